#ifndef TANDEM_SERVER_WORKER_ARTIFACT_FILE_H_
#define TANDEM_SERVER_WORKER_ARTIFACT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// Returns the file's description: its size and SHA-256. Errors are those of reading the file `name` in
// `folder`.
absl::StatusOr<v1::Artifact> DescribeArtifact(const std::string& folder, const std::string& name,
                                              const std::string& description);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_ARTIFACT_FILE_H_
