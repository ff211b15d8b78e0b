#ifndef TANDEM_ENGINE_BASE_CLOCK_H_
#define TANDEM_ENGINE_BASE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// Gives the time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Returns the wall-clock time. It may jump.
  virtual absl::Time Now() const = 0;
  // Returns the time since a fixed moment in the past. It never jumps.
  virtual absl::Duration Elapsed() const = 0;

  // Returns the machine's clock. It is never destroyed.
  static const Clock* Real();
};

// A clock that tests move by hand, both times together. Thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time now) : now_(now) {}
  absl::Time Now() const override {
    MutexLock lock(&mutex_);
    return now_;
  }
  absl::Duration Elapsed() const override { return Now() - absl::UnixEpoch(); }
  void Advance(absl::Duration by) {
    MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_CLOCK_H_
