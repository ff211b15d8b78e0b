#ifndef TANDEM_CLIENT_CLI_FOLLOW_H_
#define TANDEM_CLIENT_CLI_FOLLOW_H_

#include <cstdint>
#include <string>

#include "client/cli/session.h"
#include "client/cli/stream_notes.h"

namespace tandem::cli {

// Shows a job's events after a sequence number until the job ends. The output format, the terminal and `plot`
// choose the display. While the job is QUEUED, also shows why it waits. Returns the job's exit code,
// kNoDaemon if the connection broke for good, or kDetached after Ctrl-C.
int FollowJob(Session& session, client::Client& client, const std::string& name, int64_t after_sequence,
              bool plot);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FOLLOW_H_
