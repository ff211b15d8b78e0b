#ifndef TANDEM_CLIENT_CLI_TENSORBOARD_MIRROR_H_
#define TANDEM_CLIENT_CLI_TENSORBOARD_MIRROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/session.h"

namespace tandem::cli {

// Brings a job's TensorBoard event file in FOLDER/<job id>/ up to job.last_sequence, and returns the file's
// path. The file is on the disk when the call returns. An interrupted call leaves a file that the next call
// continues. CANCELLED after Ctrl-C. Other errors are those of WatchJob and TensorBoardFile.
absl::StatusOr<std::string> MirrorJob(Session& session, client::Client& client, const v1::Job& job,
                                      const std::string& folder);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TENSORBOARD_MIRROR_H_
