#ifndef TANDEM_SERVER_AUTH_RATE_LIMITER_H_
#define TANDEM_SERVER_AUTH_RATE_LIMITER_H_

#include <cstddef>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"

namespace tandem {

// Token buckets, one per key, such as a user. A key may take `per_second` on average, and `burst` at once
// after a rest. Thread-safe.
class RateLimiter {
 public:
  struct Rate {
    // Above 0.
    double per_second = 1;
    // At least 1.
    double burst = 1;
  };

  // The clock must outlive this object.
  explicit RateLimiter(const Clock* clock) : clock_(clock) {}
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  // Takes a token from the key's bucket and returns zero. If the bucket is empty, returns the time until its
  // next token.
  absl::Duration Take(absl::string_view key, Rate rate);

 private:
  struct Bucket {
    double tokens = 0;
    // The time of the last update of `tokens`, by Clock::Elapsed.
    absl::Duration at;
  };
  // Forgets all buckets that must be full by now.
  void ForgetFull(Rate rate, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  // At this number of buckets, Take forgets full buckets.
  size_t many_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_RATE_LIMITER_H_
