#include "server/auth/rate_limiter.h"

#include <algorithm>

namespace tandem {

void RateLimiter::ForgetFull(Rate rate, absl::Duration now) {
  for (auto i = buckets_.begin(); i != buckets_.end();) {
    const double tokens = i->second.tokens + absl::ToDoubleSeconds(now - i->second.at) * rate.per_second;
    if (tokens >= rate.burst) {
      buckets_.erase(i++);
    } else {
      ++i;
    }
  }
  // If all buckets are in use, do not search again at each call.
  many_ = std::max<size_t>(1024, 2 * buckets_.size());
}

absl::Duration RateLimiter::Take(absl::string_view key, Rate rate) {
  const absl::Duration now = clock_->Elapsed();
  MutexLock lock(&mutex_);
  if (buckets_.size() >= many_) ForgetFull(rate, now);
  const auto [found, made] = buckets_.try_emplace(std::string(key), Bucket{rate.burst, now});
  Bucket& bucket = found->second;
  bucket.tokens =
      std::min(rate.burst, bucket.tokens + absl::ToDoubleSeconds(now - bucket.at) * rate.per_second);
  bucket.at = now;
  if (bucket.tokens < 1) return absl::Seconds((1 - bucket.tokens) / rate.per_second);
  bucket.tokens -= 1;
  return absl::ZeroDuration();
}

}  // namespace tandem
