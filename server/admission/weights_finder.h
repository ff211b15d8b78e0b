#ifndef TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_
#define TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/admission/dataset_catalog.h"
#include "server/jobs/model_artifact.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Where the initial weights are that jobs name. Thread-safe; reads files and the database.
class WeightsFinder {
 public:
  // Gives a job by "jobs/<id>": JobMachine::Get.
  using FindJob = std::function<absl::StatusOr<v1::Job>(const std::string& name)>;

  // `catalog` outlives this.
  WeightsFinder(const DatasetCatalog* catalog, FindJob find_job)
      : catalog_(catalog), find_job_(std::move(find_job)) {}

  // The file that is named, with its digest where a job made it. INVALID_ARGUMENT with the field at fault,
  // relative to the JobSpec
  // ("initial_weights.file"): a file that is missing or outside the data folders, a job that is not there or
  // has no such model.
  absl::StatusOr<ModelFile> Find(const v1::InitialWeights& weights) const;

 private:
  const DatasetCatalog* const catalog_;
  const FindJob find_job_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_
