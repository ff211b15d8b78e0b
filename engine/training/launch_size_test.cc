#include "engine/training/launch_size.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns the size after 100 steps of duration `step`. After every `disturbed_every` steps, other work takes
// a second.
int64_t Measured(absl::Duration step, int64_t disturbed_every = 1000) {
  FakeClock clock{absl::UnixEpoch()};
  LaunchSize launch(0, &clock);
  int64_t undisturbed = disturbed_every;
  for (int64_t steps = 0; steps < 100; steps += launch.size()) {
    const bool disturbed = undisturbed >= disturbed_every;
    if (disturbed) clock.Advance(absl::Seconds(1)), undisturbed = 0;
    clock.Advance(step * launch.size());
    launch.Took(launch.size(), disturbed);
    undisturbed += launch.size();
  }
  return launch.size();
}

TEST(LaunchSizeTest, IsWhatTakesTwentyMilliseconds) {
  EXPECT_EQ(Measured(absl::Microseconds(600)), 32);
  EXPECT_EQ(Measured(absl::Microseconds(2500)), 8);
  EXPECT_EQ(Measured(absl::Microseconds(2501)), 4);
  EXPECT_EQ(Measured(absl::Milliseconds(90)), 1);
  EXPECT_EQ(Measured(absl::Nanoseconds(10)), 64);
}

TEST(LaunchSizeTest, WhatComesBetweenStepsIsNotMeasured) {
  // With a report after every 10 steps it takes longer, with the same result.
  EXPECT_EQ(Measured(absl::Microseconds(600), /*disturbed_every=*/10), 32);
  // Every step has a report, so nothing is measured.
  EXPECT_EQ(Measured(absl::Microseconds(600), /*disturbed_every=*/1), 1);
}

TEST(LaunchSizeTest, GroupsThatAnotherReplicaChoseAreMeasured) {
  FakeClock clock{absl::UnixEpoch()};
  LaunchSize launch(0, &clock);
  for (int i = 0; i < 10; ++i) {
    clock.Advance(32 * absl::Microseconds(600));
    launch.Took(32, i == 0);
  }
  EXPECT_EQ(launch.size(), 32);
}

TEST(LaunchSizeTest, WhatTheJobSaysCounts) {
  FakeClock clock{absl::UnixEpoch()};
  LaunchSize launch(5, &clock);
  for (int i = 0; i < 100; ++i) launch.Took(5, i == 0);
  EXPECT_EQ(launch.size(), 5);
}

}  // namespace
}  // namespace tandem
