#include "engine/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tandem {
namespace {

absl::Duration SteadyNow() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

// Long enough that no test ends by it.
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

// Who holds the lock when a wait is over is not waited for by the clock: others' waits end in time.
TEST(MutexTest, ALockThatIsHeldForLongHoldsUpNoOtherWait) {
  Mutex held, other;
  const bool never = false;
  absl::Notification is_held, waited, others_waited;
  std::thread waiter([&] {
    MutexLock lock(&held);
    EXPECT_FALSE(held.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(5)));
    waited.Notify();
  });
  std::thread holder([&] {
    MutexLock lock(&held);
    is_held.Notify();
    others_waited.WaitForNotification();
  });
  is_held.WaitForNotification();
  {
    MutexLock lock(&other);
    EXPECT_FALSE(other.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(20)));
  }
  others_waited.Notify();
  waited.WaitForNotification();
  waiter.join();
  holder.join();
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
