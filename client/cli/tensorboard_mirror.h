#ifndef TANDEM_CLIENT_CLI_TENSORBOARD_MIRROR_H_
#define TANDEM_CLIENT_CLI_TENSORBOARD_MIRROR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "client/lib/tensorboard_file.h"

namespace tandem::cli {

// Brings a job's TensorBoard event file in FOLDER/<job id>/ up to job.last_sequence, and returns the file's
// path. The file is on the disk when the call returns. `file` is the job's open file. If it is null, the call
// opens the file and reads all of it. So keep `file` for further calls for the same job. An interrupted call
// leaves a file that the next call continues. CANCELLED after Ctrl-C. Other errors are those of WatchJob and
// TensorBoardFile.
absl::StatusOr<std::string> MirrorJob(Session& session, client::Client& client, const v1::Job& job,
                                      const std::string& folder,
                                      std::unique_ptr<client::TensorBoardFile>& file);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TENSORBOARD_MIRROR_H_
