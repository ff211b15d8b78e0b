#include "server/scheduler/fair_share.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(FairShareTest, WhatWasUsedCountsHalfAfterTheHalfLife) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  FairShare usage(absl::Hours(1));
  EXPECT_EQ(usage.DeviceSeconds("ann", now), 0);
  usage.Charge("ann", 100, now);
  EXPECT_DOUBLE_EQ(usage.DeviceSeconds("ann", now), 100);
  EXPECT_DOUBLE_EQ(usage.DeviceSeconds("ann", now + absl::Hours(1)), 50);
  EXPECT_DOUBLE_EQ(usage.DeviceSeconds("ann", now + absl::Hours(2)), 25);
  const FairShare::Usage kept = usage.Charge("ann", 10, now + absl::Hours(1));
  EXPECT_DOUBLE_EQ(kept.device_seconds, 60);
  EXPECT_EQ(usage.DeviceSeconds("bob", now), 0);

  FairShare restored(absl::Hours(1));
  restored.Restore("ann", kept);
  EXPECT_DOUBLE_EQ(restored.DeviceSeconds("ann", now + absl::Hours(2)), 30);
}

TEST(FairShareTest, AClockThatIsSetBackTakesNothingBack) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  FairShare usage(absl::Hours(1));
  usage.Charge("ann", 100, now);
  EXPECT_DOUBLE_EQ(usage.DeviceSeconds("ann", now - absl::Hours(5)), 100);
}

}  // namespace
}  // namespace tandem
