#ifndef TANDEM_SERVER_FETCH_BACKOFF_H_
#define TANDEM_SERVER_FETCH_BACKOFF_H_

#include <optional>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem {

// The reason of an error that was tried again as often as it may be.
inline constexpr char kOriginUnreachable[] = "ORIGIN_UNREACHABLE";

// How often what may work later is tried again, and when.
struct RetryPolicy {
  // Tries in a row that bring nothing to speak of, before it is given up.
  int attempts = 6;
  // The wait before the second try; it doubles with each, up to 30 seconds, and a random half of it is left
  // out.
  absl::Duration first_wait = absl::Milliseconds(500);
};

// Counts the tries of one thing. Not thread-safe.
class Backoff {
 public:
  explicit Backoff(const RetryPolicy& policy) : policy_(policy) {}

  // The wait before the next try, after one that failed with `status`, which may say how long its server
  // wants it to be; none: give up. `brought`: whether the try brought something, so that counting begins
  // anew.
  std::optional<absl::Duration> After(const absl::Status& status, bool brought);
  // Counting begins anew.
  void Reset() { tries_ = 0; }
  int tries() const { return tries_; }

 private:
  const RetryPolicy policy_;
  int tries_ = 0;
  absl::BitGen random_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_BACKOFF_H_
