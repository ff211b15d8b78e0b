#ifndef TANDEM_CLIENT_CLI_ARTIFACT_DOWNLOAD_H_
#define TANDEM_CLIENT_CLI_ARTIFACT_DOWNLOAD_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/lib/client.h"

namespace tandem::cli {

// Returns the job's id, as the name of a folder for the job's files. INVALID_ARGUMENT if the daemon's id
// leads out of a folder.
absl::StatusOr<std::string> FolderNameOf(const v1::Job& job);

// Returns the artifact's path in a folder. INVALID_ARGUMENT if its name leads out of the folder.
absl::StatusOr<std::string> ArtifactPath(const std::string& folder, const std::string& artifact);

// Returns whether the daemon makes an artifact of this name from a checkpoint, such as
// "model-120.safetensors". Such artifacts are not in the job's record.
bool IsCheckpointModel(absl::string_view artifact);

// Returns whether the file at `path` has the artifact's content. If the job's record has no SHA-256 of the
// artifact, compares the file with the daemon's file. Then reads the whole daemon's file if the sizes are
// equal.
absl::StatusOr<bool> IsDownloaded(client::Client& client, const std::string& job,
                                  const v1::Artifact& artifact, const std::string& path,
                                  client::StreamObserver& observer);

// Writes an artifact of a job to `path`, and continues after a broken stream. First writes "PATH.tmp".
// Renames that file when its size and SHA-256 are right and its content is on the disk. Calls `on_bytes` with
// the bytes so far and the size of the whole artifact.
//
// DATA_LOSS: the content differs from the SHA-256 or the size in the job's record. If the record has no
// SHA-256, the content differs from the size that the daemon gives. FAILED_PRECONDITION, with the path: a
// file of this machine cannot be written (IsLocalFileError). Other errors are those of Client::ReadArtifact.
absl::Status DownloadArtifact(client::Client& client, const std::string& job, const v1::Artifact& artifact,
                              const std::string& path, client::StreamObserver& observer,
                              const std::function<void(int64_t bytes, int64_t size)>& on_bytes);

// Returns whether the error is about this machine's files, such as a full disk.
bool IsLocalFileError(const absl::Status& status);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_ARTIFACT_DOWNLOAD_H_
