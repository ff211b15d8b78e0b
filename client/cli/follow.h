#ifndef TANDEM_CLIENT_CLI_FOLLOW_H_
#define TANDEM_CLIENT_CLI_FOLLOW_H_

#include <cstdint>

#include "client/cli/session.h"
#include "client/cli/stream_notes.h"
#include "tandem/v1/job.pb.h"

namespace tandem::cli {

// Shows the events of `job`, an answer of the daemon, after a sequence number until the job ends. The output
// format, the terminal and `plot` choose the display. While the job is QUEUED or in a cluster's queue, also
// shows why it waits. Returns the job's exit code, kNoDaemon if the connection broke for good, or kDetached
// after Ctrl-C.
int FollowJob(Session& session, client::Client& client, const v1::Job& job, int64_t after_sequence,
              bool plot);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_FOLLOW_H_
