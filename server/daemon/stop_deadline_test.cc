#include "server/daemon/stop_deadline.h"

#include <atomic>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

bool Never() { return false; }

TEST(StopDeadlineTest, EndsTheProcessOnceTheTimeIsOver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const StopDeadline deadline(absl::Milliseconds(50), Never, [] { return 3; });
        absl::SleepFor(absl::Minutes(1));
      },
      testing::ExitedWithCode(3), "");
}

TEST(StopDeadlineTest, DoesNothingIfTheStopIsInTime) {
  const auto status = [] { return 3; };
  { const StopDeadline deadline(absl::Minutes(1), Never, status); }
  // Long enough for a busy machine, and over before the end of the test.
  { const StopDeadline deadline(absl::Seconds(2), Never, status); }
  {
    const StopDeadline deadline(
        absl::ZeroDuration(), [] { return true; }, status);
    absl::SleepFor(absl::Milliseconds(100));
  }
  absl::SleepFor(absl::Seconds(2));
}

// For example until the store has saved the content of a removed database.
TEST(StopDeadlineTest, WaitsAsLongAsItMust) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atomic<bool> is_saving = true;
        std::atomic<int> status = 0;
        const StopDeadline deadline(
            absl::ZeroDuration(), [&is_saving] { return is_saving.load(); },
            [&status] { return status.load(); });
        absl::SleepFor(absl::Milliseconds(500));
        // The loss shows only during the stop.
        status = 1;
        is_saving = false;
        absl::SleepFor(absl::Minutes(1));
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace tandem
