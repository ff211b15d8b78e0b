#ifndef TANDEM_CLIENT_CLI_FOLLOW_H_
#define TANDEM_CLIENT_CLI_FOLLOW_H_

#include <cstdint>
#include <string>

#include "client/cli/session.h"
#include "client/cli/stream_notes.h"

namespace tandem::cli {

// Shows a job's events from after a sequence number until it ends, in the way that the output format, the
// terminal and `plot` ask for, and while it is QUEUED why it waits. The exit code: the job's, kNoDaemon where
// the daemon was lost, kDetached after Ctrl-C.
int FollowJob(Session& session, client::Client& client, const std::string& name, int64_t after_sequence,
              bool plot);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FOLLOW_H_
