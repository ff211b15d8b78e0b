#ifndef TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_
#define TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The artifact with the parameters at the end or stop of a job's training.
inline constexpr char kModelFile[] = "model.safetensors";

// A model file or a checkpoint.
struct ModelFile {
  std::string path;
  // The expected digest, in hexadecimal; empty if unknown.
  std::string sha256;
};

// Returns true if an artifact's name, as a worker reported it, stays inside the job's folder.
bool StaysInFolder(const std::string& artifact);

// Returns a job's model; an empty name means kModelFile. The digest is known only if the job has ended:
// before, a better model may replace the file at any time, before the record changes. NOT_FOUND if the job
// has no such artifact, or it is no safetensors file. FAILED_PRECONDITION if the job may still make the
// artifact.
absl::StatusOr<ModelFile> FindModelArtifact(const v1::Job& job, const std::string& artifact);

// Returns the name of the model of a checkpoint, such as "model-120.safetensors". The checkpoint's step is
// 120.
std::string CheckpointModelName(int64_t step);

// Returns the step of the checkpoint whose model has this name; nullopt if it is no such name.
std::optional<int64_t> StepOfCheckpointModel(absl::string_view name);

// Returns the job's checkpoint of this step. Its file has its own digest. NOT_FOUND if the job's folder has
// no such checkpoint; the message lists the steps of the others.
absl::StatusOr<ModelFile> FindCheckpoint(const v1::Job& job, int64_t step);

// Returns the checkpoint whose model has this name, or a job's model. Errors as FindCheckpoint and
// FindModelArtifact. For a checkpoint's file name, the message names the checkpoint's model.
absl::StatusOr<ModelFile> FindModel(const v1::Job& job, const std::string& artifact);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_
