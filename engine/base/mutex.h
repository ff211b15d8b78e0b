#ifndef TANDEM_ENGINE_BASE_MUTEX_H_
#define TANDEM_ENGINE_BASE_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#ifdef TANDEM_TSAN
#include <sanitizer/tsan_interface.h>
#define TANDEM_TSAN_ACQUIRED(address) __tsan_acquire(address)
#define TANDEM_TSAN_RELEASING(address) __tsan_release(address)
#else
#define TANDEM_TSAN_ACQUIRED(address) static_cast<void>(0)
#define TANDEM_TSAN_RELEASING(address) static_cast<void>(0)
#endif

namespace tandem {

// The lock type of the engine and the server: absl::Mutex, reported to the thread sanitizer. The sanitizer
// cannot see inside the system's Abseil. Every member that the lock guards carries ABSL_GUARDED_BY.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
    TANDEM_TSAN_ACQUIRED(&mutex_);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    TANDEM_TSAN_RELEASING(&mutex_);
    mutex_.Unlock();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    const bool is_locked = mutex_.TryLock();
    if (is_locked) TANDEM_TSAN_ACQUIRED(&mutex_);
    return is_locked;
  }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() { mutex_.AssertHeld(); }

  // Blocks until `condition` is true. The lock is held during each evaluation. Every thread that unlocks
  // evaluates the condition. So the condition must be cheap and read only members that this lock guards.
  void Await(const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    const Evaluation evaluation{&condition, &mutex_};
    TANDEM_TSAN_RELEASING(&mutex_);
    mutex_.Await(absl::Condition(&evaluation, &Evaluation::Holds));
    TANDEM_TSAN_ACQUIRED(&mutex_);
  }
  // Blocks until `condition` is true, for at most `timeout` by the steady clock. Returns whether `condition`
  // is true.
  bool AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

 private:
  friend class CondVar;

  // A condition that reports the lock to the thread sanitizer. Abseil takes and releases the lock around each
  // evaluation out of the sanitizer's sight.
  struct Evaluation {
    const absl::Condition* condition;
    const absl::Mutex* mutex;

    bool Holds() const {
      TANDEM_TSAN_ACQUIRED(const_cast<absl::Mutex*>(mutex));
      const bool holds = condition->Eval();
      TANDEM_TSAN_RELEASING(const_cast<absl::Mutex*>(mutex));
      return holds;
    }
  };

  absl::Mutex mutex_;
};

// Holds a Mutex for its own lifetime.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// absl::CondVar for a Mutex. Prefer Mutex::Await.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    TANDEM_TSAN_RELEASING(&mutex->mutex_);
    condition_.Wait(&mutex->mutex_);
    TANDEM_TSAN_ACQUIRED(&mutex->mutex_);
  }
  void SignalAll() { condition_.SignalAll(); }

 private:
  absl::CondVar condition_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_MUTEX_H_
