#include "server/jobs/boot_clock.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(BootClockTest, GoesOnFromTheBoot) {
  const absl::Duration before = BootClock()->Elapsed();
  EXPECT_GT(before, absl::ZeroDuration());
  EXPECT_GE(BootClock()->Elapsed(), before);
}

TEST(BootClockTest, TheBootIsTheSameOneAsBefore) {
  EXPECT_NE(BootId(), "");
  EXPECT_EQ(BootId(), BootId());
}

}  // namespace
}  // namespace tandem
