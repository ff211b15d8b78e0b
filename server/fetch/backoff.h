#ifndef TANDEM_SERVER_FETCH_BACKOFF_H_
#define TANDEM_SERVER_FETCH_BACKOFF_H_

#include <optional>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem {

// The reason of the error after the last try.
inline constexpr char kOriginUnreachable[] = "ORIGIN_UNREACHABLE";

// The number of tries and the waits between them.
struct RetryPolicy {
  // The number of tries without progress before the fetch fails.
  int attempts = 6;
  // The wait before the second try. It doubles with each try, up to 30 seconds. Each wait is a random part of
  // it, at least a half.
  absl::Duration first_wait = absl::Milliseconds(500);
};

// Counts the tries of one fetch. Not thread-safe.
class Backoff {
 public:
  explicit Backoff(const RetryPolicy& policy) : policy_(policy) {}

  // Returns the wait before the next try, after a try that failed with `status`; nullopt to give up. `status`
  // may have a longer wait that the server asked for. If the try `brought` data, the count restarts.
  std::optional<absl::Duration> After(const absl::Status& status, bool brought);
  // Restarts the count.
  void Reset() { tries_ = 0; }
  int tries() const { return tries_; }

 private:
  const RetryPolicy policy_;
  int tries_ = 0;
  absl::BitGen random_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_BACKOFF_H_
