#ifndef TANDEM_ENGINE_BASE_ALARM_CLOCK_H_
#define TANDEM_ENGINE_BASE_ALARM_CLOCK_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// Ends the timed waits of Mutex. Abseil's own go by the machine's wall clock, and last an hour longer where
// it is set back by an hour; this one's thread waits by a clock that nobody can set. One a process; the
// child of a fork makes its first timed wait while it has one thread. Thread-safe.
class AlarmClock {
 public:
  // One timed wait.
  struct Alarm {
    // Is unlocked once the alarm has rung, so that whoever waits for that looks.
    Mutex* mutex;
    std::atomic<bool> has_rung = false;
    // Of the AlarmClock: whoever waits has been made to look since.
    bool has_woken = false;
  };
  using Place = std::multimap<absl::Duration, Alarm*>::iterator;

  // Lives for ever.
  static AlarmClock* Get();

  // Rings `alarm` after `timeout`, which is finite. To be called with its mutex held; the alarm and its mutex
  // live until Remove.
  Place Add(absl::Duration timeout, Alarm* alarm) ABSL_LOCKS_EXCLUDED(mutex_);
  // To be called whether it has rung or not.
  void Remove(Place place) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AlarmClock();
  // Ends the process where there can be none: no timed wait would end.
  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns until when there is nothing to do then.
  absl::Duration RingDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // In the child of a fork, which has neither the thread nor who waited, nor who holds the lock.
  void BeginAnew();

  // Others' locks are held when this one is taken; under it they are only tried.
  Mutex mutex_;
  // By when they ring, by the steady clock. Those that have rung stay until who waits has seen it.
  std::multimap<absl::Duration, Alarm*> alarms_ ABSL_GUARDED_BY(mutex_);
  // Until then the thread sleeps.
  absl::Duration sleeps_until_ ABSL_GUARDED_BY(mutex_);
  bool has_thread_ ABSL_GUARDED_BY(mutex_) = false;
  // To which all this belongs.
  std::atomic<pid_t> process_;
  // Counts what the thread is to look at; it sleeps on it.
  std::atomic<uint32_t> changes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_ALARM_CLOCK_H_
