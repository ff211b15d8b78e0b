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

// Ends the timed waits of Mutex. Abseil's timed waits follow the wall clock: if somebody sets the wall clock
// back by an hour, the waits last an hour longer. The thread of AlarmClock follows the steady clock, which
// nobody can set. Each process has a single AlarmClock. The child of a fork must make its first timed wait
// while it has a single thread. Thread-safe.
class AlarmClock {
 public:
  // A timed wait.
  struct Alarm {
    // The alarm clock locks and unlocks this mutex after the alarm has rung, so that the waiter's condition
    // is evaluated.
    Mutex* mutex;
    std::atomic<bool> has_rung = false;
    // Used by AlarmClock alone: the mutex has been unlocked since the alarm rang.
    bool has_woken = false;
  };
  using Place = std::multimap<absl::Duration, Alarm*>::iterator;

  // Returns the process's alarm clock. It is never destroyed.
  static AlarmClock* Get();

  // Rings `alarm` after `timeout`, which is finite. The caller holds the alarm's mutex. The alarm and its
  // mutex must live until Remove.
  Place Add(absl::Duration timeout, Alarm* alarm) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets the alarm, whether it has rung or not. Each Add needs a Remove.
  void Remove(Place place) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AlarmClock();
  // Aborts the process if the thread cannot start, because no timed wait would end.
  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Rings all alarms that are due. Returns the time of the next call, by the steady clock.
  absl::Duration RingDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // Resets the state in the child of a fork. The child has neither the thread nor the waiters nor the lock's
  // holder.
  void BeginAnew();

  // Lock order: callers of Add and Remove hold their own lock when they take mutex_. Under mutex_, the thread
  // only tries to take alarms' locks.
  Mutex mutex_;
  // Alarms by the time at which they ring, by the steady clock. An alarm that has rung stays until Remove.
  std::multimap<absl::Duration, Alarm*> alarms_ ABSL_GUARDED_BY(mutex_);
  // The end of the thread's current sleep, by the steady clock.
  absl::Duration sleeps_until_ ABSL_GUARDED_BY(mutex_);
  bool has_thread_ ABSL_GUARDED_BY(mutex_) = false;
  // The process that owns the thread and the alarms.
  std::atomic<pid_t> process_;
  // Counts events for the thread. The thread sleeps on this word.
  std::atomic<uint32_t> changes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_ALARM_CLOCK_H_
