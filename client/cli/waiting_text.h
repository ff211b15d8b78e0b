#ifndef TANDEM_CLIENT_CLI_WAITING_TEXT_H_
#define TANDEM_CLIENT_CLI_WAITING_TEXT_H_

#include <string>

#include "absl/time/time.h"
#include "tandem/v1/job.pb.h"

namespace tandem::cli {

// Returns the start of a waiting job: "now"; "~4 s or later" if no time limit bounds the wait; "~4 s, at most
// 10 min" or "at most 10 min" if time limits do; "soon" if the estimate has passed; "-" if unknown.
std::string FormatStart(const v1::Waiting& waiting, absl::Time now);

// Returns a queued job's place, start and reason: "#2 in the queue, starts in ~5 min or later: Needs 2 CPUs;
// 1 of 2 free." Unknown parts are left out.
std::string WaitingText(const v1::Waiting& waiting, absl::Time now);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_WAITING_TEXT_H_
