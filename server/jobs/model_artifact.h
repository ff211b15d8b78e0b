#ifndef TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_
#define TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The artifact that has the parameters with which a job's training ended or stopped.
inline constexpr char kModelFile[] = "model.safetensors";

// A file with a model's parameters.
struct ModelFile {
  std::string path;
  // What its content must have, in hexadecimal digits; empty: nobody knows.
  std::string sha256;
};

// One of a job's models; an empty name means kModelFile. Its digest is known where the job has
// ended: before that a better model may take its place at any time, and its record comes after it. NOT_FOUND
// where the job has no artifact of the name, or it is no safetensors file; FAILED_PRECONDITION where it may
// still come.
absl::StatusOr<ModelFile> FindModelArtifact(const v1::Job& job, const std::string& artifact);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_
