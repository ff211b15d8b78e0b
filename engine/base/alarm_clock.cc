#include "engine/base/alarm_clock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tandem {
namespace {

// The next try, if another thread holds the waiter's lock. That thread's Unlock evaluates the waiter's
// condition, so this try is hardly ever needed.
constexpr absl::Duration kTryAgain = absl::Milliseconds(10);
// The longest sleep. The thread then looks at the alarms in vain.
constexpr absl::Duration kLongest = absl::Hours(1);

absl::Duration SteadyNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

// Sleeps until `word` differs from `seen` or SteadyNow() reaches `until`. May return earlier.
void Sleep(std::atomic<uint32_t>* word, uint32_t seen, absl::Duration until) {
  const timespec time = absl::ToTimespec(until);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_BITSET_PRIVATE, seen, &time, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void WakeSleeper(std::atomic<uint32_t>* word) {
  word->fetch_add(1);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// All signals except the thread's own faults. Signals to the process belong to threads that expect them.
sigset_t BlockedSignals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&signals, own);
  return signals;
}

}  // namespace

AlarmClock* AlarmClock::Get() {
  static AlarmClock* const clock = new AlarmClock;
  return clock;
}

AlarmClock::AlarmClock() : process_(getpid()) {}

AlarmClock::Place AlarmClock::Add(absl::Duration timeout, Alarm* alarm) {
  if (process_.load() != getpid()) BeginAnew();
  const absl::Duration due = SteadyNow() + timeout;
  MutexLock lock(&mutex_);
  if (!has_thread_) StartThread();
  const Place place = alarms_.emplace(due, alarm);
  if (due < sleeps_until_) WakeSleeper(&changes_);
  return place;
}

void AlarmClock::Remove(Place place) {
  MutexLock lock(&mutex_);
  alarms_.erase(place);
}

void AlarmClock::StartThread() {
  const sigset_t blocked = BlockedSignals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  pthread_t thread;
  const auto run = [](void* clock) -> void* {
    static_cast<AlarmClock*>(clock)->Run();
    return nullptr;
  };
  const int error = pthread_create(&thread, nullptr, run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    std::fprintf(stderr, "cannot start the thread by which waits end: %s\n", std::strerror(error));
    std::abort();
  }
  pthread_detach(thread);
  has_thread_ = true;
  sleeps_until_ = absl::InfiniteDuration();
}

void AlarmClock::BeginAnew() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // Another thread may have been changing both when the process forked, so neither is destroyed.
  new (&mutex_) Mutex;
  new (&alarms_) std::multimap<absl::Duration, Alarm*>;
  has_thread_ = false;
  process_ = getpid();
}

void AlarmClock::Run() {
  while (true) {
    const uint32_t seen = changes_.load();
    Sleep(&changes_, seen, RingDue());
  }
}

absl::Duration AlarmClock::RingDue() {
  MutexLock lock(&mutex_);
  const absl::Duration now = SteadyNow();
  sleeps_until_ = now + kLongest;
  for (auto& [due, alarm] : alarms_) {
    if (due > now) {
      sleeps_until_ = std::min(sleeps_until_, due);
      break;
    }
    if (alarm->has_woken) continue;
    alarm->has_rung = true;
    if (alarm->mutex->TryLock()) {
      alarm->mutex->Unlock();
      alarm->has_woken = true;
    } else {
      sleeps_until_ = now + kTryAgain;
    }
  }
  return sleeps_until_;
}

}  // namespace tandem
