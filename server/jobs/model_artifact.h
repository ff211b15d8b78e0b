#ifndef TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_
#define TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The path of one of a job's models; an empty name means "model.safetensors". NOT_FOUND where the job has no
// artifact of the name, or it is no safetensors file; FAILED_PRECONDITION where it may still come.
absl::StatusOr<std::string> FindModelArtifact(const v1::Job& job, const std::string& artifact);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_MODEL_ARTIFACT_H_
