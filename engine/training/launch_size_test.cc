#include "engine/training/launch_size.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

// What follows from steps that take so long, the first 100 of them.
int64_t Measured(absl::Duration step, bool disturbed = false) {
  FakeClock clock{absl::UnixEpoch()};
  LaunchSize launch(0, &clock);
  for (int64_t steps = 0; steps < 100; steps += launch.size()) {
    clock.Advance(step * launch.size());
    launch.Took(launch.size(), steps == 0 || disturbed);
  }
  return launch.size();
}

TEST(LaunchSizeTest, IsWhatTakesTwoMilliseconds) {
  EXPECT_EQ(Measured(absl::Microseconds(60)), 32);
  EXPECT_EQ(Measured(absl::Microseconds(250)), 8);
  EXPECT_EQ(Measured(absl::Microseconds(251)), 4);
  EXPECT_EQ(Measured(absl::Milliseconds(9)), 1);
  EXPECT_EQ(Measured(absl::Nanoseconds(10)), 64);
}

TEST(LaunchSizeTest, IsNotMeasuredWhereSomethingComesBetweenSteps) {
  EXPECT_EQ(Measured(absl::Microseconds(60), /*disturbed=*/true), 1);
}

TEST(LaunchSizeTest, WhatTheJobSaysCounts) {
  FakeClock clock{absl::UnixEpoch()};
  LaunchSize launch(5, &clock);
  for (int i = 0; i < 100; ++i) launch.Took(5, i == 0);
  EXPECT_EQ(launch.size(), 5);
}

}  // namespace
}  // namespace tandem
