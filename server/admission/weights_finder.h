#ifndef TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_
#define TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/admission/dataset_catalog.h"
#include "server/jobs/model_artifact.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Finds the initial weights that jobs name. Reads files and the database. Thread-safe.
class WeightsFinder {
 public:
  // Returns the job "jobs/<id>", like JobMachine::Get.
  using FindJob = std::function<absl::StatusOr<v1::Job>(const std::string& name)>;

  // `catalog` must outlive this object.
  WeightsFinder(const DatasetCatalog* catalog, FindJob find_job)
      : catalog_(catalog), find_job_(std::move(find_job)) {}

  // Returns the named file. If a job made the file, the result has the file's digest. INVALID_ARGUMENT names
  // the wrong field, relative to the JobSpec ("initial_weights.file"). The file is missing or outside the
  // data folders, or the job does not exist or has no such model.
  absl::StatusOr<ModelFile> Find(const v1::InitialWeights& weights) const;

 private:
  const DatasetCatalog* const catalog_;
  const FindJob find_job_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_
