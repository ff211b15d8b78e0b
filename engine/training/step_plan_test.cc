#include "engine/training/step_plan.h"

#include <cstdint>
#include <vector>

#include "engine/training/dealt_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Trainings with epochs of 4 steps. Recorded steps count from 1.
class StepPlanTest : public testing::Test {
 protected:
  StepPlanTest() {
    spec_.mutable_training()->set_epochs(2);
    spec_.mutable_training()->mutable_validation()->set_every_epochs(1);
    spec_.mutable_checkpoints()->set_every_epochs(1);
  }

  TrainingLength Length() const { return TrainingLength::Of(spec_.training(), 4); }
  StepPlan Plan(const AveragingPolicy* averaging = nullptr) const {
    return StepPlan(spec_, {.length = Length(), .validates = validates_, .averaging = averaging});
  }

  // Takes all steps. From step number `signalled` on, the ranks see `signals`.
  void Take(int64_t first_step = 0, int64_t signalled = 0, const StepSignals& signals = {}) {
    const StepPlan plan = Plan();
    int64_t reported_steps = first_step;
    reported_ = epochs_ = validated_ = checkpoints_ = {};
    for (int64_t step = first_step; step < Length().steps; ++step) {
      const bool acts = plan.ActsAfter(step, reported_steps);
      const bool is_signalled = signalled > 0 && step + 1 >= signalled;
      const AfterStep after = plan.After(step, reported_steps, is_signalled ? signals : StepSignals());
      // Without a signal, the number of the step tells whether an action follows.
      EXPECT_EQ(after.report, acts || (is_signalled && signals.any())) << step;
      if (after.report) reported_.push_back(reported_steps = step + 1);
      if (after.ends_epoch) epochs_.push_back(step + 1);
      if (after.validate) validated_.push_back(step + 1);
      if (after.checkpoint) checkpoints_.push_back(step + 1);
      end_ = after.end;
      ended_ = step + 1;
      if (after.end != v1::STATE_REASON_UNSPECIFIED) break;
    }
  }

  // Takes all steps, up to `most` at a time. Returns the last step of each launch.
  std::vector<int64_t> Launches(int64_t most, const AveragingPolicy* averaging = nullptr) const {
    const StepPlan plan = Plan(averaging);
    std::vector<int64_t> ends;
    int64_t reported_steps = 0;
    for (int64_t step = 0; step < Length().steps;) {
      step += plan.StepsFrom(step, reported_steps, most);
      if (plan.ActsAfter(step - 1, reported_steps)) reported_steps = step;
      ends.push_back(step);
    }
    return ends;
  }

  v1::JobSpec spec_;
  bool validates_ = true;
  std::vector<int64_t> reported_, epochs_, validated_, checkpoints_;
  v1::StateReason end_ = v1::STATE_REASON_UNSPECIFIED;
  int64_t ended_ = 0;
};

TEST_F(StepPlanTest, LaunchesEndWhereAnActionFollows) {
  EXPECT_THAT(Launches(1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(Launches(3), ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(Launches(64), ElementsAre(4, 8));
  spec_.mutable_training()->mutable_validation()->set_every_steps(3);
  EXPECT_THAT(Launches(64), ElementsAre(3, 4, 6, 8));
  validates_ = false;
  EXPECT_THAT(Launches(64), ElementsAre(4, 8));
  spec_.mutable_checkpoints()->set_every_steps(5);
  EXPECT_THAT(Launches(64), ElementsAre(4, 5, 8));
  spec_.mutable_training()->set_epochs(0);
  spec_.mutable_training()->set_steps(7);
  EXPECT_THAT(Launches(64), ElementsAre(4, 5, 7));
  // The interval counts from the last report of any kind.
  spec_.mutable_training()->mutable_report()->set_every_steps(2);
  EXPECT_THAT(Launches(64), ElementsAre(2, 4, 5, 7));
}

TEST_F(StepPlanTest, LaunchesEndAtAveragings) {
  v1::ParameterAveraging& averaging = *spec_.mutable_replicas()->mutable_parameter_averaging();
  averaging.set_every_iterations(3);
  spec_.mutable_training()->set_global_batch_size(2);
  DatasetInfo data;
  data.train_samples = 8;
  const DealtSamples dealt(spec_, data, {1, 1});
  EXPECT_THAT(Launches(64, &dealt.averaging), ElementsAre(3, 4, 7, 8));
  EXPECT_FALSE(Plan(&dealt.averaging).ActsAfter(2, 0));
  averaging.set_report_score_after_averaging(true);
  const DealtSamples told(spec_, data, {1, 1});
  EXPECT_TRUE(Plan(&told.averaging).ActsAfter(2, 0));
  const AfterStep after = Plan(&told.averaging).After(2, 0, {});
  EXPECT_TRUE(after.report);
  EXPECT_FALSE(after.settles());
}

TEST_F(StepPlanTest, EpochByEpoch) {
  Take();
  EXPECT_THAT(reported_, ElementsAre(4, 8));
  EXPECT_EQ(epochs_, reported_);
  EXPECT_EQ(validated_, reported_);
  EXPECT_EQ(checkpoints_, reported_);
  EXPECT_EQ(end_, v1::STATE_REASON_COMPLETED);
}

TEST_F(StepPlanTest, StepsMayCutTheLastEpochShort) {
  spec_.mutable_training()->clear_epochs();
  spec_.mutable_training()->set_steps(6);
  EXPECT_EQ(Length().epochs, 2);
  EXPECT_EQ(Length().EpochOf(4), 1);
  EXPECT_EQ(Length().EpochOf(5), 2);
  Take();
  EXPECT_THAT(epochs_, ElementsAre(4, 6));
  EXPECT_EQ(validated_, epochs_);
  EXPECT_EQ(checkpoints_, epochs_);
  EXPECT_EQ(end_, v1::STATE_REASON_COMPLETED);
}

TEST_F(StepPlanTest, IntervalsOfSteps) {
  v1::ValidationInterval& validation = *spec_.mutable_training()->mutable_validation();
  validation.clear_every_epochs();
  validation.set_every_steps(3);
  spec_.mutable_checkpoints()->set_every_steps(5);
  Take();
  EXPECT_THAT(epochs_, ElementsAre(4, 8));
  EXPECT_THAT(validated_, ElementsAre(3, 6, 8));
  EXPECT_THAT(checkpoints_, ElementsAre(4, 5, 8));
  EXPECT_THAT(reported_, ElementsAre(3, 4, 5, 6, 8));
  spec_.mutable_training()->mutable_report()->set_every_steps(3);
  validates_ = false;
  spec_.mutable_checkpoints()->set_off(true);
  Take();
  EXPECT_THAT(reported_, ElementsAre(3, 4, 7, 8));
}

TEST_F(StepPlanTest, IntervalsOfEpochs) {
  spec_.mutable_training()->set_epochs(5);
  spec_.mutable_training()->mutable_validation()->set_every_epochs(2);
  spec_.mutable_checkpoints()->set_every_epochs(3);
  Take();
  EXPECT_THAT(validated_, ElementsAre(8, 16, 20));
  EXPECT_THAT(checkpoints_, ElementsAre(12, 20));
  validates_ = false;
  spec_.mutable_checkpoints()->set_off(true);
  Take();
  EXPECT_THAT(validated_, IsEmpty());
  EXPECT_THAT(checkpoints_, IsEmpty());
}

TEST_F(StepPlanTest, ReportsAndCheckpointsByTheClock) {
  Take(0, /*signalled=*/7, {.report_is_due = true});
  EXPECT_THAT(reported_, ElementsAre(4, 7, 8));
  EXPECT_THAT(checkpoints_, ElementsAre(4, 8));
  Take(0, /*signalled=*/7, {.checkpoint_is_due = true});
  EXPECT_THAT(reported_, ElementsAre(4, 7, 8));
  EXPECT_THAT(checkpoints_, ElementsAre(4, 7, 8));
  EXPECT_THAT(epochs_, ElementsAre(4, 8));
  EXPECT_THAT(validated_, ElementsAre(4, 8));
}

TEST_F(StepPlanTest, APauseEndsNoEpoch) {
  Take(0, /*signalled=*/3, {.pause = true});
  EXPECT_EQ(end_, v1::STATE_REASON_PAUSE_REQUESTED);
  EXPECT_EQ(ended_, 3);
  EXPECT_THAT(epochs_, IsEmpty());
  EXPECT_THAT(validated_, IsEmpty());
  EXPECT_THAT(checkpoints_, ElementsAre(3));
  EXPECT_THAT(reported_, ElementsAre(3));
  // Training continues from the pause.
  Take(3);
  EXPECT_THAT(epochs_, ElementsAre(4, 8));
  // A complete training is not paused.
  Take(4, /*signalled=*/8, {.pause = true});
  EXPECT_EQ(end_, v1::STATE_REASON_COMPLETED);
}

TEST_F(StepPlanTest, TheTimeLimitEndsTheEpochInProgress) {
  // The limit counts more than a pause.
  Take(0, /*signalled=*/5, {.time_is_up = true, .pause = true});
  EXPECT_EQ(end_, v1::STATE_REASON_TIME_LIMIT);
  EXPECT_EQ(ended_, 5);
  EXPECT_THAT(epochs_, ElementsAre(4, 5));
  EXPECT_THAT(validated_, ElementsAre(4, 5));
  EXPECT_THAT(checkpoints_, ElementsAre(4, 5));
}

}  // namespace
}  // namespace tandem
