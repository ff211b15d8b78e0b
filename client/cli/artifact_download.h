#ifndef TANDEM_CLIENT_CLI_ARTIFACT_DOWNLOAD_H_
#define TANDEM_CLIENT_CLI_ARTIFACT_DOWNLOAD_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/lib/client.h"

namespace tandem::cli {

// Returns the artifact's path in a folder. INVALID_ARGUMENT if its name leads out of the folder.
absl::StatusOr<std::string> ArtifactPath(const std::string& folder, const std::string& artifact);

// Returns whether the file exists with the artifact's size and SHA-256.
bool IsDownloaded(const std::string& path, const v1::Artifact& artifact);

// Writes an artifact of a job to `path`. It first writes "PATH.part", and renames this file when its size and
// SHA-256 are right and all bytes are on the disk. Continues after a broken stream. Calls `on_bytes` with the
// number of bytes so far. DATA_LOSS if the content differs from the job's record or, if the record has no
// SHA-256, from the daemon's size. FAILED_PRECONDITION, with the path, for errors of this machine's files.
// Never UNKNOWN.
absl::Status DownloadArtifact(client::Client& client, const std::string& job, const v1::Artifact& artifact,
                              const std::string& path, client::StreamObserver& observer,
                              const std::function<void(int64_t)>& on_bytes);

// Returns whether the error is about this machine's files, such as a full disk.
bool IsLocalFileError(const absl::Status& status);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_ARTIFACT_DOWNLOAD_H_
