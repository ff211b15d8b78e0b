#include "server/admission/weights_finder.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {

absl::StatusOr<ModelFile> WeightsFinder::Find(const v1::InitialWeights& weights) const {
  if (weights.has_file()) {
    const std::optional<UploadedFile> uploaded = UploadedWeights(weights);
    absl::StatusOr<std::string> path = uploaded.has_value() && find_uploaded_ != nullptr
                                           ? find_uploaded_(*uploaded)
                                           : catalog_->ResolveFile(weights.file());
    if (!path.ok() && !absl::IsInvalidArgument(path.status())) return path.status();
    if (!path.ok()) return FieldError("initial_weights.file", path.status().message());
    return ModelFile{*std::move(path), ""};
  }
  if (!weights.has_artifact()) {
    return FieldError("initial_weights", "has no source; give the artifact of a job, or a file");
  }
  const std::string& name = weights.artifact().job();
  const absl::StatusOr<v1::Job> job = find_job_(name);
  if (!job.ok()) {
    if (!absl::IsNotFound(job.status())) return job.status();
    return FieldError("initial_weights.artifact.job",
                      absl::StrCat("is '", absl::CHexEscape(name.substr(0, 80)),
                                   "', but there is no such job; it may have been deleted"));
  }
  if (StepOfCheckpointModel(weights.artifact().artifact()).has_value()) {
    return FieldError(
        "initial_weights.artifact.artifact",
        "is the model of a checkpoint; give an artifact of the job, fork the checkpoint (tandem "
        "fork), or download its model into a data folder and give initial_weights.file");
  }
  absl::StatusOr<ModelFile> file = FindModelArtifact(*job, weights.artifact().artifact());
  if (!file.ok()) return FieldError("initial_weights.artifact", file.status().message());
  return file;
}

}  // namespace tandem
