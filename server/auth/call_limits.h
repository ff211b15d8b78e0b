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

// How often a user may call, and how many streams the user may have open: so that one who calls in a loop
// takes from nobody else. Thread-safe.
class CallLimits {
 public:
  // `quota` gives what a user may have; it and the clock outlive this.
  CallLimits(std::function<UserQuota(const std::string& user)> quota, const Clock* clock)
      : quota_(std::move(quota)), rates_(clock) {}
  CallLimits(const CallLimits&) = delete;
  CallLimits& operator=(const CallLimits&) = delete;

  // An open stream, until it goes. It must not outlive the limits.
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

  // A call of any kind. RESOURCE_EXHAUSTED, with a retry delay: too many in too short a time.
  absl::Status Admit(const std::string& user);

  // A call that is a stream, after Admit. RESOURCE_EXHAUSTED, with a retry delay: too many are open.
  absl::StatusOr<std::unique_ptr<Stream>> Open(const std::string& user);

 private:
  void Close(const std::string& user);

  const std::function<UserQuota(const std::string& user)> quota_;
  RateLimiter rates_;
  Mutex mutex_;
  // By user; none that is 0.
  absl::flat_hash_map<std::string, int> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_CALL_LIMITS_H_
