#include "server/auth/call_limits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"

namespace tandem {
namespace {

// The burst is this many seconds' worth of calls, so that a script that submits a list of jobs is not
// refused.
constexpr double kBurstSeconds = 5;
// The end of a stream is unknown, so the retry delay is a guess.
constexpr absl::Duration kStreamDelay = absl::Seconds(5);

}  // namespace

absl::Status CallLimits::Admit(const std::string& user) {
  const double rate = quota_(user).calls_per_second;
  if (rate <= 0) return absl::OkStatus();
  const absl::Duration wait = rates_.Take(absl::StrCat("u:", user), {rate, rate * kBurstSeconds});
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return WithRetryDelay(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                       "cannot take the call of \"", user, "\": it makes more than ",
                                       absl::StrFormat("%.10g", rate),
                                       " calls per second (--user-max-call-rate); wait a moment")),
                                   "CALL_RATE_EXCEEDED"),
                        wait);
}

absl::StatusOr<std::unique_ptr<CallLimits::Stream>> CallLimits::Open(const std::string& user) {
  const int most = quota_(user).max_streams;
  MutexLock lock(&mutex_);
  int& open = streams_[user];
  if (most > 0 && open >= most) {
    return WithRetryDelay(
        WithReason(absl::ResourceExhaustedError(absl::StrCat(
                       "cannot open another stream for \"", user, "\": ", open, " of at most ", most,
                       " are open (--user-max-streams, or the token's max_streams); end some watches, logs, "
                       "uploads or downloads")),
                   "TOO_MANY_STREAMS"),
        kStreamDelay);
  }
  ++open;
  return std::unique_ptr<Stream>(new Stream(this, user));
}

void CallLimits::Close(const std::string& user) {
  MutexLock lock(&mutex_);
  const auto found = streams_.find(user);
  if (--found->second == 0) streams_.erase(found);
}

}  // namespace tandem
