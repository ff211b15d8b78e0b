#ifndef TANDEM_ENGINE_BASE_CLOCK_H_
#define TANDEM_ENGINE_BASE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// Tells the time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time; may jump.
  virtual absl::Time Now() const = 0;
  // Time since some moment of the past; never jumps.
  virtual absl::Duration Elapsed() const = 0;

  // The machine's clock; lives for ever.
  static const Clock* Real();
};

// A clock that tests move by hand. Thread-safe.
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
