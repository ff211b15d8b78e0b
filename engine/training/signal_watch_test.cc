#include "engine/training/signal_watch.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SignalWatchTest : public testing::Test {
 protected:
  // Takes 12 steps of a second each, and acts on all signals. `before` runs before each step. Returns the
  // steps, from 1, that saw the signal `is_set`.
  std::vector<int64_t> Steps(const std::function<bool(const StepSignals&)>& is_set, double seconds_before = 0,
                             const std::function<void(SignalWatch&, int64_t step)>& before = nullptr) {
    SignalWatch watch(spec_, &clock_);
    // Preparations do not count.
    clock_.Advance(absl::Hours(1));
    watch.Start(seconds_before);
    std::vector<int64_t> steps;
    for (int64_t step = 1; step <= 12; ++step) {
      if (before) before(watch, step);
      clock_.Advance(absl::Seconds(1));
      const StepSignals signals = watch.Look();
      if (is_set(signals)) steps.push_back(step);
      watch.Acted(signals, {.report = signals.any(), .checkpoint = signals.checkpoint_is_due});
    }
    return steps;
  }

  v1::JobSpec spec_;
  FakeClock clock_{absl::UnixEpoch()};
};

bool ReportIsDue(const StepSignals& signals) { return signals.report_is_due; }
bool CheckpointIsDue(const StepSignals& signals) { return signals.checkpoint_is_due; }
bool TimeIsUp(const StepSignals& signals) { return signals.time_is_up; }
bool Pauses(const StepSignals& signals) { return signals.pause; }

TEST_F(SignalWatchTest, Reports) {
  EXPECT_THAT(Steps(ReportIsDue), IsEmpty());
  spec_.mutable_training()->mutable_report()->set_every_seconds(4);
  EXPECT_THAT(Steps(ReportIsDue), ElementsAre(4, 8, 12));
  // A validation after step 5 takes three seconds.
  const auto validate = [this](SignalWatch& watch, int64_t step) {
    if (step != 6) return;
    clock_.Advance(absl::Seconds(3));
    watch.Restart();
  };
  EXPECT_THAT(Steps(ReportIsDue, 0, validate), ElementsAre(4, 9));
}

TEST_F(SignalWatchTest, ASignalStaysUntilTheRanksAct) {
  spec_.mutable_training()->mutable_report()->set_every_seconds(4);
  SignalWatch watch(spec_, &clock_);
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(watch.Look().report_is_due);
  EXPECT_TRUE(watch.Look().report_is_due);
  watch.Acted({}, {});
  EXPECT_TRUE(watch.Look().report_is_due);
  watch.Acted({}, {.report = true});
  EXPECT_FALSE(watch.Look().report_is_due);
}

TEST_F(SignalWatchTest, Checkpoints) {
  spec_.mutable_checkpoints()->set_every_minutes(3 / 60.0);
  EXPECT_THAT(Steps(CheckpointIsDue), ElementsAre(3, 6, 9, 12));
  spec_.mutable_checkpoints()->set_off(true);
  EXPECT_THAT(Steps(CheckpointIsDue), IsEmpty());
}

TEST_F(SignalWatchTest, TheTimeLimitCoversAllRuns) {
  EXPECT_THAT(Steps(TimeIsUp), IsEmpty());
  spec_.mutable_training()->mutable_early_stopping()->set_max_seconds(11);
  EXPECT_THAT(Steps(TimeIsUp), ElementsAre(11, 12));
  EXPECT_THAT(Steps(TimeIsUp, /*seconds_before=*/1), ElementsAre(10, 11, 12));
  EXPECT_EQ(Steps(TimeIsUp, /*seconds_before=*/40).size(), 12);
}

TEST_F(SignalWatchTest, Pause) {
  EXPECT_THAT(Steps(Pauses), IsEmpty());
  EXPECT_THAT(Steps(Pauses, 0,
                    [](SignalWatch& watch, int64_t step) {
                      if (step == 11) watch.Pause();
                    }),
              ElementsAre(11, 12));
}

TEST_F(SignalWatchTest, LaunchesTakeTwentyMilliseconds) {
  SignalWatch watch(spec_, &clock_);
  EXPECT_EQ(watch.Look().launch_steps, 1);
  for (int64_t step = 0; step < 40; ++step) {
    clock_.Advance(absl::Milliseconds(2));
    watch.Took(1, /*disturbed=*/step == 0);
  }
  EXPECT_EQ(watch.Look().launch_steps, 8);
  spec_.mutable_gpu()->set_steps_per_launch(5);
  EXPECT_EQ(SignalWatch(spec_, &clock_).Look().launch_steps, 5);
}

}  // namespace
}  // namespace tandem
