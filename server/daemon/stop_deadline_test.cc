#include "server/daemon/stop_deadline.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(StopDeadlineTest, EndsTheProcessOnceTheTimeIsOver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const StopDeadline deadline(absl::Milliseconds(50), 3);
        absl::SleepFor(absl::Minutes(1));
      },
      testing::ExitedWithCode(3), "");
}

TEST(StopDeadlineTest, DoesNothingIfTheStopIsInTime) {
  { const StopDeadline deadline(absl::Minutes(1), 3); }
  { const StopDeadline deadline(absl::Milliseconds(20), 3); }
  absl::SleepFor(absl::Milliseconds(100));
}

}  // namespace
}  // namespace tandem
