#ifndef TANDEM_SERVER_AUTH_CALL_LIMITS_H_
#define TANDEM_SERVER_AUTH_CALL_LIMITS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/auth/rate_limiter.h"
#include "server/scheduler/user_quota.h"

namespace tandem {

// Limits each user's calls per second and open streams, so that one user's loop of calls does not slow down
// others. Thread-safe.
class CallLimits {
 public:
  // `quota` returns a user's limits. `quota` and the clock must outlive this object.
  CallLimits(std::function<UserQuota(const std::string& user)> quota, const Clock* clock)
      : quota_(std::move(quota)), rates_(clock) {}
  CallLimits(const CallLimits&) = delete;
  CallLimits& operator=(const CallLimits&) = delete;

  // Counts as an open stream until destroyed. Must not outlive the CallLimits.
  class Stream {
   public:
    ~Stream() { limits_->Close(user_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

   private:
    friend class CallLimits;
    Stream(CallLimits* limits, std::string user) : limits_(limits), user_(std::move(user)) {}
    CallLimits* const limits_;
    const std::string user_;
  };

  // Admits a call of any kind. RESOURCE_EXHAUSTED with a retry delay: the user makes too many calls per
  // second.
  absl::Status Admit(const std::string& user);

  // Admits a stream, after Admit. RESOURCE_EXHAUSTED with a retry delay: the user has too many open streams.
  absl::StatusOr<std::unique_ptr<Stream>> Open(const std::string& user);

 private:
  void Close(const std::string& user);

  const std::function<UserQuota(const std::string& user)> quota_;
  RateLimiter rates_;
  Mutex mutex_;
  // Open streams by user, without zeros.
  absl::flat_hash_map<std::string, int> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_CALL_LIMITS_H_
