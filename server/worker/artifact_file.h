#ifndef TANDEM_SERVER_WORKER_ARTIFACT_FILE_H_
#define TANDEM_SERVER_WORKER_ARTIFACT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// Reads the file `name` in `folder` and says what it is: its size and its SHA-256. Errors are those of
// reading it.
absl::StatusOr<v1::Artifact> DescribeArtifact(const std::string& folder, const std::string& name,
                                              const std::string& description);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_ARTIFACT_FILE_H_
