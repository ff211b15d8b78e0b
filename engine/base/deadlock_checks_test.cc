#include "engine/base/deadlock_checks.h"

#include <unistd.h>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

void TakeTwoLocksInBothOrders() {
  absl::Mutex first, second;
  first.Lock();
  second.Lock();
  second.Unlock();
  first.Unlock();
  second.Lock();
  first.Lock();
  first.Unlock();
  second.Unlock();
}

TEST(DeadlockChecksDeathTest, ATestThatTakesTwoLocksInBothOrdersAborts) {
  EXPECT_DEATH(TakeTwoLocksInBothOrders(), "deadlock");
}

TEST(DeadlockChecksDeathTest, OnlyAnOptimisedProgramTurnsTheChecksOff) {
  const auto run = [] {
    TurnOffDeadlockChecks();
    TakeTwoLocksInBothOrders();
    _exit(0);
  };
#ifdef NDEBUG
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
#else
  EXPECT_DEATH(run(), "deadlock");
#endif
}

}  // namespace
}  // namespace tandem
