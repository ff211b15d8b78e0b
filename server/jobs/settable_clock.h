#ifndef TANDEM_SERVER_JOBS_SETTABLE_CLOCK_H_
#define TANDEM_SERVER_JOBS_SETTABLE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"

namespace tandem {

// For tests: a clock that can be set, while `time` measures the passing time. `time` must outlive this
// object. Thread-safe.
class SettableClock : public Clock {
 public:
  explicit SettableClock(const FakeClock* time) : time_(time) {}
  absl::Time Now() const override {
    MutexLock lock(&mutex_);
    return time_->Now() + ahead_;
  }
  absl::Duration Elapsed() const override { return time_->Elapsed(); }
  // Sets the clock ahead of the time.
  void Set(absl::Duration ahead) {
    MutexLock lock(&mutex_);
    ahead_ = ahead;
  }

 private:
  const FakeClock* const time_;
  mutable Mutex mutex_;
  absl::Duration ahead_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_SETTABLE_CLOCK_H_
