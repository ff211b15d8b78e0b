#ifndef TANDEM_CLIENT_CLI_WAITING_TEXT_H_
#define TANDEM_CLIENT_CLI_WAITING_TEXT_H_

#include <string>

#include "absl/time/time.h"
#include "tandem/v1/job.pb.h"

namespace tandem::cli {

// When a waiting job starts, with how much of that is known: "now"; "~4 s or later" if no time limit bounds
// its wait; "~4 s, at most 10 min" or "at most 10 min" if time limits do; "soon" if the estimate has passed;
// "-" if nobody knows.
std::string FormatStart(const v1::Waiting& waiting, absl::Time now);

// Where a queued job stands, when it may start, and why it waits: "#2 in the queue, starts in ~5 min or
// later: Needs 2 CPUs; 1 of 2 free." A part that nobody knows is left out.
std::string WaitingText(const v1::Waiting& waiting, absl::Time now);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_WAITING_TEXT_H_
