#ifndef TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_
#define TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/admission/dataset_catalog.h"
#include "server/jobs/model_artifact.h"
#include "server/jobs/uploaded_weights.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Finds the initial weights that jobs name. Reads files and the database. Thread-safe.
class WeightsFinder {
 public:
  // Returns the job "jobs/<id>", like JobMachine::Get.
  using FindJob = std::function<absl::StatusOr<v1::Job>(const std::string& name)>;

  // Returns the absolute path of an uploaded file, like Uploads::FindFile.
  using FindUploaded = std::function<absl::StatusOr<std::string>(const UploadedFile& file)>;

  // `catalog` must outlive this object. A null `find_uploaded` finds no uploaded file.
  WeightsFinder(const DatasetCatalog* catalog, FindJob find_job, FindUploaded find_uploaded = nullptr)
      : catalog_(catalog), find_job_(std::move(find_job)), find_uploaded_(std::move(find_uploaded)) {}

  // Returns the named file. If a job made the file, the result has the file's digest. INVALID_ARGUMENT names
  // the wrong field, relative to the JobSpec ("initial_weights.file"). The file is missing or outside the
  // data folders, its URL is not in the cache, it is no file of a whole upload, or the job does not exist or
  // has no such model. Does not check the owner of an upload.
  absl::StatusOr<ModelFile> Find(const v1::InitialWeights& weights) const;

 private:
  const DatasetCatalog* const catalog_;
  const FindJob find_job_;
  const FindUploaded find_uploaded_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_WEIGHTS_FINDER_H_
