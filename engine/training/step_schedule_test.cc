#include "engine/training/step_schedule.h"

#include <memory>
#include <vector>

#include "engine/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StepScheduleTest : public testing::Test {
 protected:
  StepScheduleTest() {
    spec_.mutable_training()->set_epochs(2);
    spec_.mutable_training()->mutable_validation()->set_every_epochs(1);
    spec_.mutable_checkpoints()->set_every_epochs(1);
  }

  // Takes all steps of epochs of 4 steps. Recorded steps count from 1.
  void Take(int64_t first_step = 0, double seconds_before = 0) {
    const TrainingLength length = TrainingLength::Of(spec_.training(), 4);
    StepSchedule schedule(spec_, {.length = length,
                                  .replicas = 1,
                                  .validates = validates_,
                                  .first_step = first_step,
                                  .seconds_before = seconds_before,
                                  .pause = &pause_,
                                  .clock = &clock_,
                                  .reports_after = nullptr});
    schedule.Start();
    reported_ = epochs_ = validated_ = checkpoints_ = {};
    for (int64_t step = first_step; step < length.steps; ++step) {
      if (step + 1 == pause_before_) pause_ = true;
      clock_.Advance(absl::Seconds(1));
      const AfterStep after = schedule.After(step);
      if (after.report) reported_.push_back(step + 1);
      if (after.ends_epoch) epochs_.push_back(step + 1);
      if (after.validate) validated_.push_back(step + 1);
      if (after.checkpoint) checkpoints_.push_back(step + 1);
      end_ = after.end;
      ended_ = step + 1;
      if (after.end != v1::STATE_REASON_UNSPECIFIED) break;
    }
  }

  // Takes all steps of epochs of 4 steps, up to `most` at a time. Returns the last step of each group.
  std::vector<int64_t> Groups(int64_t most) {
    const TrainingLength length = TrainingLength::Of(spec_.training(), 4);
    StepSchedule schedule(spec_, {.length = length,
                                  .replicas = 2,
                                  .validates = validates_,
                                  .pause = &pause_,
                                  .clock = &clock_,
                                  .reports_after = nullptr});
    schedule.Start();
    std::vector<int64_t> ends;
    for (int64_t step = 0; step < length.steps;) {
      const int64_t steps = schedule.StepsFrom(step, most);
      // The first replica's `most` counts.
      EXPECT_EQ(schedule.StepsFrom(step, 1), steps);
      step += steps;
      schedule.After(step - 1);
      schedule.After(step - 1);
      ends.push_back(step);
    }
    return ends;
  }

  v1::JobSpec spec_;
  bool validates_ = true;
  std::atomic<bool> pause_{false};
  int64_t pause_before_ = 0;
  FakeClock clock_{absl::UnixEpoch()};
  std::vector<int64_t> reported_, epochs_, validated_, checkpoints_;
  v1::StateReason end_ = v1::STATE_REASON_UNSPECIFIED;
  int64_t ended_ = 0;
};

TEST_F(StepScheduleTest, GroupsOfStepsEndWhereSomethingFollows) {
  spec_.mutable_training()->mutable_report()->set_every_seconds(1000);
  EXPECT_THAT(Groups(1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(Groups(3), ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(Groups(64), ElementsAre(4, 8));
  spec_.mutable_training()->mutable_validation()->set_every_steps(3);
  EXPECT_THAT(Groups(64), ElementsAre(3, 4, 6, 8));
  validates_ = false;
  EXPECT_THAT(Groups(64), ElementsAre(4, 8));
  spec_.mutable_checkpoints()->set_every_steps(5);
  EXPECT_THAT(Groups(64), ElementsAre(4, 5, 8));
  spec_.mutable_training()->set_epochs(0);
  spec_.mutable_training()->set_steps(7);
  EXPECT_THAT(Groups(64), ElementsAre(4, 5, 7));
  // The interval counts from the last report of any kind.
  spec_.mutable_training()->mutable_report()->set_every_steps(2);
  EXPECT_THAT(Groups(64), ElementsAre(2, 4, 5, 7));
}

TEST_F(StepScheduleTest, EpochByEpoch) {
  Take();
  EXPECT_THAT(reported_, ElementsAre(4, 8));
  EXPECT_EQ(epochs_, reported_);
  EXPECT_EQ(validated_, reported_);
  EXPECT_EQ(checkpoints_, reported_);
  EXPECT_EQ(end_, v1::STATE_REASON_COMPLETED);
}

TEST_F(StepScheduleTest, CheckpointsByTheClock) {
  spec_.mutable_training()->set_epochs(3);
  spec_.mutable_checkpoints()->clear_every_epochs();
  // A step takes a second.
  spec_.mutable_checkpoints()->set_every_minutes(3 / 60.0);
  Take();
  EXPECT_THAT(checkpoints_, ElementsAre(3, 6, 9, 12));
  Take(/*first_step=*/1);
  EXPECT_THAT(checkpoints_, ElementsAre(4, 7, 10, 12));
  // In addition to the other interval.
  spec_.mutable_checkpoints()->set_every_steps(5);
  Take();
  EXPECT_THAT(checkpoints_, ElementsAre(3, 5, 6, 9, 10, 12));
}

TEST_F(StepScheduleTest, StepsMayCutTheLastEpochShort) {
  spec_.mutable_training()->clear_epochs();
  spec_.mutable_training()->set_steps(6);
  const TrainingLength length = TrainingLength::Of(spec_.training(), 4);
  EXPECT_EQ(length.epochs, 2);
  EXPECT_EQ(length.EpochOf(4), 1);
  EXPECT_EQ(length.EpochOf(5), 2);
  Take();
  EXPECT_THAT(epochs_, ElementsAre(4, 6));
  EXPECT_EQ(validated_, epochs_);
  EXPECT_EQ(checkpoints_, epochs_);
  EXPECT_EQ(end_, v1::STATE_REASON_COMPLETED);
}

TEST_F(StepScheduleTest, IntervalsOfSteps) {
  v1::ValidationInterval& validation = *spec_.mutable_training()->mutable_validation();
  validation.clear_every_epochs();
  validation.set_every_steps(3);
  spec_.mutable_checkpoints()->set_every_steps(5);
  Take();
  EXPECT_THAT(epochs_, ElementsAre(4, 8));
  EXPECT_THAT(validated_, ElementsAre(3, 6, 8));
  EXPECT_THAT(checkpoints_, ElementsAre(4, 5, 8));
  EXPECT_THAT(reported_, ElementsAre(3, 4, 5, 6, 8));
}

TEST_F(StepScheduleTest, IntervalsOfEpochs) {
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

TEST_F(StepScheduleTest, ReportsByStepsAndByTime) {
  spec_.mutable_training()->mutable_report()->set_every_steps(3);
  Take();
  EXPECT_THAT(reported_, ElementsAre(3, 4, 7, 8));
  spec_.mutable_training()->mutable_report()->set_every_seconds(2);
  Take();
  EXPECT_THAT(reported_, ElementsAre(2, 4, 6, 8));
}

TEST_F(StepScheduleTest, APauseEndsNoEpoch) {
  pause_before_ = 3;
  Take();
  EXPECT_EQ(end_, v1::STATE_REASON_PAUSE_REQUESTED);
  EXPECT_EQ(ended_, 3);
  EXPECT_THAT(epochs_, IsEmpty());
  EXPECT_THAT(validated_, IsEmpty());
  EXPECT_THAT(checkpoints_, ElementsAre(3));
  EXPECT_THAT(reported_, ElementsAre(3));
  // Training continues from the pause.
  pause_ = false;
  pause_before_ = 0;
  Take(3);
  EXPECT_THAT(epochs_, ElementsAre(4, 8));
  // A complete training is not paused.
  pause_before_ = 8;
  Take(4);
  EXPECT_EQ(end_, v1::STATE_REASON_COMPLETED);
}

TEST_F(StepScheduleTest, TheTimeLimitEndsTheEpochInProgress) {
  spec_.mutable_training()->mutable_early_stopping()->set_max_seconds(5);
  Take();
  EXPECT_EQ(end_, v1::STATE_REASON_TIME_LIMIT);
  EXPECT_EQ(ended_, 5);
  EXPECT_THAT(epochs_, ElementsAre(4, 5));
  EXPECT_THAT(validated_, ElementsAre(4, 5));
  // The limit covers all attempts.
  Take(0, /*seconds_before=*/3);
  EXPECT_EQ(ended_, 2);
  Take(0, /*seconds_before=*/40);
  EXPECT_EQ(ended_, 1);
}

TEST_F(StepScheduleTest, TheFirstReplicaDecidesForAll) {
  StepSchedule schedule(spec_, {.length = TrainingLength::Of(spec_.training(), 4),
                                .replicas = 2,
                                .validates = true,
                                .first_step = 0,
                                .seconds_before = 0,
                                .pause = &pause_,
                                .clock = &clock_,
                                .reports_after = [](int64_t step) { return step == 1; }});
  schedule.Start();
  // A replica is two steps ahead when the command comes.
  EXPECT_FALSE(schedule.After(0).report);
  EXPECT_TRUE(schedule.After(1).report);
  pause_ = true;
  EXPECT_EQ(schedule.After(2).end, v1::STATE_REASON_PAUSE_REQUESTED);
  EXPECT_FALSE(schedule.After(0).report);
  const AfterStep second = schedule.After(1);
  EXPECT_TRUE(second.report);
  EXPECT_FALSE(second.settles());
  EXPECT_EQ(schedule.After(2).end, v1::STATE_REASON_PAUSE_REQUESTED);
}

}  // namespace
}  // namespace tandem
