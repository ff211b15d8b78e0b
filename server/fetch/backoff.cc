#include "server/fetch/backoff.h"

#include <algorithm>

#include "server/fetch/origin.h"

namespace tandem {

std::optional<absl::Duration> Backoff::After(const absl::Status& status, bool brought) {
  constexpr absl::Duration kLongestWait = absl::Seconds(30);
  tries_ = brought ? 1 : tries_ + 1;
  if (tries_ >= policy_.attempts) return std::nullopt;
  absl::Duration wait = policy_.first_wait;
  for (int i = 1; i < tries_; ++i) wait = std::min(2 * wait, kLongestWait);
  wait *= absl::Uniform(random_, 0.5, 1.0);
  return std::max(wait, absl::Seconds(RetryAfterSeconds(status)));
}

}  // namespace tandem
