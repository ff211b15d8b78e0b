#include "engine/base/alarm_clock.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tandem {
namespace {

// Where somebody else holds the lock: that one's Unlock has the waiter look, so this is hardly ever needed.
constexpr absl::Duration kTryAgain = absl::Milliseconds(2);
// Of a sleep; there is nothing to be seen then.
constexpr absl::Duration kLongest = absl::Hours(1);

absl::Duration SteadyNow() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

// Until `word` is no longer `seen`, or `duration` is over, or sooner. A FUTEX_WAIT goes by CLOCK_MONOTONIC.
void Sleep(std::atomic<uint32_t>* word, uint32_t seen, absl::Duration duration) {
  const timespec time = absl::ToTimespec(std::min(duration, kLongest));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
}

void WakeSleeper(std::atomic<uint32_t>* word) {
  word->fetch_add(1);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

AlarmClock* AlarmClock::Get() {
  static AlarmClock* const clock = new AlarmClock;
  return clock;
}

AlarmClock::Place AlarmClock::Add(absl::Duration timeout, Alarm* alarm) {
  const absl::Duration due = SteadyNow() + timeout;
  MutexLock lock(&mutex_);
  if (process_ != getpid()) StartThread();
  const Place place = alarms_.emplace(due, alarm);
  if (due < sleeps_until_) WakeSleeper(&changes_);
  return place;
}

void AlarmClock::Remove(Place place) {
  MutexLock lock(&mutex_);
  alarms_.erase(place);
}

void AlarmClock::StartThread() {
  process_ = getpid();
  alarms_.clear();
  sleeps_until_ = absl::InfiniteDuration();
  // Signals are for threads that know of them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { Run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void AlarmClock::Run() {
  while (true) {
    const uint32_t seen = changes_.load();
    Sleep(&changes_, seen, RingDue());
  }
}

absl::Duration AlarmClock::RingDue() {
  const absl::Duration now = SteadyNow();
  absl::Duration wait = kLongest;
  MutexLock lock(&mutex_);
  for (auto& [due, alarm] : alarms_) {
    if (due > now) {
      wait = std::min(wait, due - now);
      break;
    }
    if (alarm->has_woken) continue;
    alarm->has_rung = true;
    if (alarm->mutex->TryLock()) {
      alarm->mutex->Unlock();
      alarm->has_woken = true;
    } else {
      wait = kTryAgain;
    }
  }
  sleeps_until_ = now + wait;
  return wait;
}

}  // namespace tandem
