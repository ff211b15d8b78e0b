#include "engine/base/mutex.h"

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

absl::Duration SteadyNow() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

// Longer than any test, so that no test ends by this timeout.
constexpr absl::Duration kVeryLong = absl::Hours(1000);

TEST(MutexTest, ATimedWaitLastsAsLongAsItShould) {
  Mutex mutex;
  const bool never = false;
  for (const absl::Duration timeout : {absl::Milliseconds(30), absl::Milliseconds(1), absl::ZeroDuration(),
                                       -absl::Seconds(1), -absl::InfiniteDuration()}) {
    const absl::Duration begin = SteadyNow();
    MutexLock lock(&mutex);
    EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&never), timeout));
    EXPECT_GE(SteadyNow() - begin, timeout);
  }
}

TEST(MutexTest, WhatHoldsIsNotWaitedFor) {
  Mutex mutex;
  const bool always = true;
  MutexLock lock(&mutex);
  EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&always), kVeryLong));
  EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&always), absl::InfiniteDuration()));
  EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&always), -absl::Seconds(1)));
}

TEST(MutexTest, ATimedWaitEndsWithItsCondition) {
  for (const absl::Duration timeout : {kVeryLong, absl::InfiniteDuration()}) {
    Mutex mutex;
    bool holds = false;
    std::thread other([&] {
      absl::SleepFor(absl::Milliseconds(5));
      MutexLock lock(&mutex);
      holds = true;
    });
    {
      MutexLock lock(&mutex);
      EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&holds), timeout));
    }
    other.join();
  }
}

TEST(MutexTest, TheLockIsFreeDuringAWaitAndHeldAfterIt) {
  Mutex mutex;
  bool was_taken = false;
  const bool never = false;
  mutex.Lock();
  std::thread other([&] {
    MutexLock lock(&mutex);
    was_taken = true;
  });
  while (!was_taken) {
    EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(1)));
    mutex.AssertHeld();
    std::thread([&] { EXPECT_FALSE(mutex.TryLock()); }).join();
  }
  mutex.Unlock();
  other.join();
}

// A thread that holds the lock of an ended wait does not delay the ends of other waits.
TEST(MutexTest, ALockThatIsHeldForLongHoldsUpNoOtherWait) {
  // Repeats with a longer timeout until the lock was taken before the wait ended.
  for (absl::Duration timeout = absl::Milliseconds(50);; timeout *= 4) {
    Mutex held, other;
    const bool never = false;
    absl::Notification waits;
    absl::Duration is_over_at;
    std::thread waiter([&] {
      MutexLock lock(&held);
      is_over_at = SteadyNow() + timeout;
      waits.Notify();
      EXPECT_FALSE(held.AwaitWithTimeout(absl::Condition(&never), timeout));
    });
    waits.WaitForNotification();
    bool was_in_time;
    {
      MutexLock lock(&held);
      was_in_time = SteadyNow() < is_over_at;
      MutexLock other_lock(&other);
      EXPECT_FALSE(other.AwaitWithTimeout(absl::Condition(&never), 2 * timeout));
    }
    waiter.join();
    if (was_in_time) return;
  }
}

// Makes the kernel end the process at a futex wait by the wall clock. Returns whether the kernel has filters.
bool ForbidWaitsByTheWallClock() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FUTEX_CLOCK_REALTIME, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

[[noreturn]] void WaitWithoutTheWallClock() {
  if (!ForbidWaitsByTheWallClock()) _exit(2);
  Mutex mutex;
  const bool never = false;
  {
    MutexLock lock(&mutex);
    for (int i = 0; i < 3; ++i) mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(5));
  }
  _exit(0);
}

TEST(MutexDeathTest, TimedWaitsDoNotGoByTheWallClock) {
  // A kernel with seccomp filters answers EFAULT for a filter at a null address.
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) == 0 || errno != EFAULT) {
    GTEST_SKIP() << "the kernel has no seccomp filters";
  }
  // The death test runs in a process without other threads.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(WaitWithoutTheWallClock(), testing::ExitedWithCode(0), "");
}

TEST(MutexTest, ManyWaitsOfManyThreadsEnd) {
  constexpr int kThreads = 16, kWaits = 200;
  Mutex shared;
  bool flag = false;
  std::atomic<int> over = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < kWaits; ++k) {
        Mutex own;
        Mutex& mutex = k % 2 == 0 ? own : shared;
        const bool wanted = (i + k) % 2 == 0;
        const auto holds = [&] { return &mutex == &shared && flag == wanted; };
        MutexLock lock(&mutex);
        mutex.AwaitWithTimeout(absl::Condition(&holds), absl::Microseconds(i * k));
        if (&mutex == &shared) flag = !flag;
        ++over;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(over, kThreads * kWaits);
}

}  // namespace
}  // namespace tandem
