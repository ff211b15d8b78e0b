// Trainings that end early, pause, or break off and continue.

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/faulty_env.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/model_file.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/training_state.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TrainerResumeTest, APausedTrainingEndsBitForBitWhereAWholeOneDoes) {
  for (const char* kind : {"cpu", "reference"}) {
    for (const auto& [replicas, drop_last] : {std::pair(1, false), {3, false}, {1, true}, {3, true}}) {
      v1::JobSpec spec =
          SmallJob(replicas, "best_model {} weight_average { decay: 0.9 } accumulation_steps: 2");
      spec.mutable_training()->set_drop_last(drop_last);
      // An epoch of 61 samples has 8 steps, or 7 if the last five samples are dropped.
      const int64_t steps_per_epoch = drop_last ? 7 : 8;
      Whole whole(spec, kind);
      for (const int64_t pause : {1, 6, 8, 13}) {
        SCOPED_TRACE(absl::StrCat(kind, " ", replicas, " ", drop_last, " ", pause));
        FaultyEnv env;
        Recorder first;
        const Result paused = TrainWithFiles(spec, kind, &env, &first, [&](Trainer& trainer, int64_t step) {
          if (step == pause) trainer.Pause();
        });
        ASSERT_TRUE(paused.status.ok()) << paused.status;
        ASSERT_EQ(paused.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED);
        // The pause takes effect at the next step or the step after it.
        const int64_t step = paused.summary.steps();
        EXPECT_GE(step, pause + 1);
        EXPECT_LE(step, pause + 2);
        EXPECT_EQ(paused.summary.checkpoint_step(), step);
        // The last validation is that of the last whole epoch.
        EXPECT_EQ(paused.summary.validation_step(), step / steps_per_epoch * steps_per_epoch);
        EXPECT_EQ(first.checkpoints.back(), step);
        EXPECT_FALSE(env.ReadFile(kModel).ok());

        const size_t size = env.ReadFile(CheckpointPath(step))->size();

        Recorder second;
        const Result resumed = TrainWithFiles(spec, kind, &env, &second);
        ASSERT_TRUE(resumed.status.ok()) << resumed.status;
        EXPECT_EQ(resumed.outcome.reason, v1::STATE_REASON_COMPLETED);
        EXPECT_EQ(second.started, step);
        EXPECT_EQ(second.resumed.step(), step);
        EXPECT_EQ(second.resumed.epoch(), step / steps_per_epoch);
        EXPECT_EQ(second.resumed.size_bytes(), static_cast<int64_t>(size));
        EXPECT_EQ(second.resumed.file(), CheckpointFileName(step));
        EXPECT_EQ(*env.ReadFile(kModel), whole.model);
        EXPECT_EQ(*env.ReadFile(kBest), *whole.env.ReadFile(kBest));
        std::vector<double> losses = first.losses, rates = first.rates;
        losses.insert(losses.end(), second.losses.begin(), second.losses.end());
        rates.insert(rates.end(), second.rates.begin(), second.rates.end());
        EXPECT_EQ(losses, whole.recorder.losses);
        EXPECT_EQ(rates, whole.recorder.rates);
        EXPECT_LT(rates.back(), rates.front());
        // An interrupted epoch counts as a single epoch.
        ASSERT_EQ(first.epochs.size() + second.epochs.size(), 4);
        for (size_t i = 0; i < second.epochs.size(); ++i) {
          const v1::EpochSummary& expected = whole.recorder.epochs[first.epochs.size() + i];
          EXPECT_EQ(second.epochs[i].epoch(), expected.epoch());
          EXPECT_EQ(second.epochs[i].training().samples(), drop_last ? 56 : 61);
          EXPECT_NEAR(second.epochs[i].training().loss(), expected.training().loss(), 1e-12);
          EXPECT_EQ(second.epochs[i].validation().loss(), expected.validation().loss());
          EXPECT_EQ(second.epochs[i].best().step(), expected.best().step());
        }
        EXPECT_EQ(resumed.summary.steps(), 4 * steps_per_epoch);
        EXPECT_EQ(resumed.summary.epochs(), 4);
        EXPECT_EQ(resumed.summary.best().value(), whole.summary.best().value());
      }
    }
  }
}

TEST(TrainerResumeTest, ATrainingThatBreaksOffGoesOnFromItsLastCheckpoint) {
  for (const int replicas : {1, 2}) {
    const v1::JobSpec spec = SmallJob(replicas);
    Whole whole(spec, "cpu");
    EXPECT_THAT(whole.recorder.checkpoints, ElementsAre(8, 16, 24, 32));
    FaultyEnv env;
    Recorder first;
    const Result broken = TrainWithFiles(spec, "cpu", &env, &first, [&](Trainer& trainer, int64_t step) {
      if (step == 20) trainer.Cancel();
    });
    EXPECT_EQ(broken.status.code(), absl::StatusCode::kCancelled);
    env.CutPower();
    Recorder second;
    const Result resumed = TrainWithFiles(spec, "cpu", &env, &second);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    EXPECT_EQ(second.started, 16);
    EXPECT_EQ(*env.ReadFile(kModel), whole.model);
    EXPECT_EQ(second.epochs.size(), 2);
    // A complete training has no steps left and writes its model again.
    ASSERT_TRUE(env.RemoveFile(kModel).ok());
    Recorder third;
    EXPECT_EQ(TrainWithFiles(spec, "cpu", &env, &third).outcome.reason, v1::STATE_REASON_COMPLETED);
    EXPECT_EQ(third.started, 32);
    EXPECT_THAT(third.losses, IsEmpty());
    EXPECT_EQ(*env.ReadFile(kModel), whole.model);
  }
}

TEST(TrainerResumeTest, EpochsGoOnWhereTheyGetOtherSteps) {
  for (const int replicas : {1, 2}) {
    FaultyEnv env;
    Recorder first;
    ASSERT_TRUE(TrainWithFiles(SmallJob(replicas), "cpu", &env, &first).status.ok());
    ASSERT_EQ(first.checkpoints.back(), 32);
    // Four epochs of 8 steps become four epochs of 2.
    v1::JobSpec spec = SmallJob(replicas, "epochs: 6");
    spec.mutable_training()->set_global_batch_size(32);
    Recorder second;
    Result result = TrainWithFiles(spec, "cpu", &env, &second);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(second.started, 32);
    EXPECT_THAT(
        second.notices,
        Contains("An epoch had 8 steps where the checkpoint of step 32 was written, and has 2 here: 4 "
                 "epochs count as trained, of 6, and training ends with step 36."));
    EXPECT_EQ(second.losses.size(), 4);
    ASSERT_EQ(second.epochs.size(), 2);
    EXPECT_EQ(second.epochs[0].epoch(), 5);
    EXPECT_EQ(second.epochs[0].step(), 34);
    EXPECT_EQ(second.epochs[0].training().samples(), 61);
    EXPECT_EQ(second.epochs[1].epoch(), 6);
    EXPECT_EQ(second.epochs[1].epochs(), 6);
    EXPECT_THAT(second.checkpoints, ElementsAre(34, 36));
    // Then four epochs of 8, two of 2 and the rest of 13. A pause does not change this.
    spec.mutable_training()->set_epochs(8);
    spec.mutable_training()->set_global_batch_size(5);
    std::string whole;
    for (const bool pauses : {false, true}) {
      FaultyEnv own;
      ASSERT_TRUE(WriteFileAtomically(&own, CheckpointPath(36), [&](WritableFile& file) {
                    return file.Append(*env.ReadFile(CheckpointPath(36)));
                  }).ok());
      Recorder third;
      result = TrainWithFiles(spec, "cpu", &own, &third, [&](Trainer& trainer, int64_t step) {
        if (pauses && step == 40) trainer.Pause();
      });
      ASSERT_TRUE(result.status.ok()) << result.status;
      if (pauses) {
        ASSERT_EQ(result.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED);
        Recorder resumed;
        result = TrainWithFiles(spec, "cpu", &own, &resumed);
        ASSERT_TRUE(result.status.ok()) << result.status;
        EXPECT_THAT(resumed.notices, IsEmpty());
        EXPECT_EQ(*own.ReadFile(kModel), whole);
      } else {
        whole = *own.ReadFile(kModel);
      }
      EXPECT_EQ(result.summary.steps(), 36 + 2 * 13);
      EXPECT_EQ(result.summary.epochs(), 8);
    }
  }
}

// The warm-up took an epoch of 8 steps. Epochs of 2 steps follow from step 24. A pause does not change this.
TEST(TrainerResumeTest, TheScheduleRemembersTheStepAfterItsWarmUp) {
  v1::JobSpec spec = SmallJob(1, "epochs: 3");
  *spec.mutable_training()->mutable_schedule() = FromText<v1::Schedule>(
      "polynomial {} unit: SCHEDULE_UNIT_STEPS "
      "warmup { length: 1 start_factor: 0 unit: SCHEDULE_UNIT_EPOCHS }");
  FaultyEnv env;
  Recorder first;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &first).status.ok());
  const double rate = first.rates[8];
  EXPECT_NEAR(first.rates[16], rate / 2, 1e-12);
  spec.mutable_training()->set_epochs(6);
  spec.mutable_training()->set_global_batch_size(32);
  Recorder second, third;
  Result result = TrainWithFiles(spec, "cpu", &env, &second, [](Trainer& trainer, int64_t step) {
    if (step == 27) trainer.Pause();
  });
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &third).status.ok());
  std::vector<double> rates = second.rates;
  rates.insert(rates.end(), third.rates.begin(), third.rates.end());
  ASSERT_EQ(rates.size(), 6);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(rates[i], rate * (1 - (16 + i) / 22.0), 1e-12) << i;
}

TEST(TrainerResumeTest, AnEpochInProgressGoesOnAtTheSamePart) {
  FaultyEnv env;
  Recorder first;
  ASSERT_TRUE(TrainWithFiles(SmallJob(1, "steps: 13"), "cpu", &env, &first).status.ok());
  v1::JobSpec spec = SmallJob(1, "epochs: 2");
  spec.mutable_training()->set_global_batch_size(16);
  Recorder second;
  const Result result = TrainWithFiles(spec, "cpu", &env, &second);
  ASSERT_TRUE(result.status.ok()) << result.status;
  // 5 of 8 steps become 2 of 4.
  EXPECT_EQ(result.summary.steps(), 15);
  ASSERT_EQ(second.epochs.size(), 1);
  EXPECT_EQ(second.epochs[0].epoch(), 2);
}

TEST(TrainerResumeTest, CheckpointsWithinEpochsAndNone) {
  v1::JobSpec spec = SmallJob(2, "steps: 13");
  spec.mutable_checkpoints()->set_every_steps(5);
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &recorder).status.ok());
  EXPECT_THAT(recorder.checkpoints, ElementsAre(5, 10, 13));
  spec.mutable_checkpoints()->Clear();
  spec.mutable_checkpoints()->set_off(true);
  FaultyEnv empty;
  Recorder none;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &empty, &none).status.ok());
  EXPECT_THAT(none.checkpoints, IsEmpty());
  EXPECT_THAT(*ListCheckpointFiles(&empty, kFolder), IsEmpty());
}

TEST(TrainerResumeTest, StepsAreALengthToo) {
  FaultyEnv env;
  Recorder recorder;
  const Result result = TrainWithFiles(SmallJob(2, "steps: 13"), "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.outcome.message, "All steps were trained.");
  EXPECT_EQ(recorder.losses.size(), 13);
  ASSERT_EQ(recorder.epochs.size(), 2);
  EXPECT_EQ(recorder.epochs[1].step(), 13);
  EXPECT_EQ(recorder.epochs[1].epochs(), 2);
  EXPECT_EQ(recorder.epochs[1].training().samples(), 40);
  EXPECT_TRUE(recorder.epochs[1].has_validation());
  // The second epoch has five of eight steps.
  EXPECT_EQ(result.summary.epochs(), 1);
}

// For example a fork that trains longer.
TEST(TrainerResumeTest, AnEpochThatWasCutShortGoesOn) {
  FaultyEnv env;
  Recorder whole;
  ASSERT_TRUE(TrainWithFiles(SmallJob(2, "steps: 16"), "cpu", &env, &whole).status.ok());
  FaultyEnv own;
  Recorder first;
  ASSERT_TRUE(TrainWithFiles(SmallJob(2, "steps: 13"), "cpu", &own, &first).status.ok());
  Recorder second;
  const Result result = TrainWithFiles(SmallJob(2, "steps: 16"), "cpu", &own, &second);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.epochs(), 2);
  ASSERT_EQ(second.epochs.size(), 1);
  EXPECT_EQ(second.epochs[0].epoch(), 2);
  EXPECT_EQ(second.epochs[0].training().samples(), 61);
  EXPECT_EQ(second.epochs[0].training().loss(), whole.epochs[1].training().loss());
}

TEST(TrainerResumeTest, ValidatesEverySoManySteps) {
  for (const int replicas : {1, 2}) {
    FaultyEnv env;
    Recorder recorder;
    const Result result = TrainWithFiles(
        SmallJob(replicas, "epochs: 2 validation { every_steps: 5 } best_model {}"), "cpu", &env, &recorder);
    ASSERT_TRUE(result.status.ok()) << result.status;
    std::vector<int64_t> steps;
    for (const v1::ValidationResult& validation : recorder.validations) {
      steps.push_back(validation.step());
      EXPECT_EQ(validation.validation().samples(), 27);
      EXPECT_EQ(validation.epoch(), validation.step() > 8 ? 2 : 1);
    }
    EXPECT_THAT(steps, ElementsAre(5, 10, 15));
    EXPECT_EQ(result.summary.validation_step(), 16);
    ASSERT_EQ(recorder.epochs.size(), 2);
    EXPECT_FALSE(recorder.epochs[0].has_validation());
    EXPECT_TRUE(recorder.epochs[1].has_validation());
    EXPECT_FALSE(recorder.best_steps.empty());
    EXPECT_EQ(recorder.best_steps.back(), result.summary.best().step());
    EXPECT_TRUE(ParseSafetensors(*env.ReadFile(kBest)).ok());
  }
}

TEST(TrainerResumeTest, StopsEarlyForAllReplicas) {
  for (const int replicas : {1, 3}) {
    for (const std::string validation : {"", "validation { every_steps: 3 }"}) {
      SCOPED_TRACE(absl::StrCat(replicas, validation));
      FaultyEnv env;
      Recorder recorder;
      // No loss improves by 100.
      const v1::JobSpec spec = SmallJob(
          replicas, absl::StrCat("epochs: 9 ", validation, "early_stopping { patience: 2 min_delta: 100 }"));
      const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(result.outcome.reason, v1::STATE_REASON_NO_IMPROVEMENT);
      const int64_t steps = validation.empty() ? 24 : 9;
      EXPECT_THAT(result.outcome.message, HasSubstr(absl::StrCat("after step ", steps)));
      EXPECT_EQ(result.summary.steps(), steps);
      ASSERT_EQ(recorder.epochs.size(), validation.empty() ? 3 : 2);
      EXPECT_EQ(recorder.epochs.back().step(), steps);
      EXPECT_EQ(recorder.checkpoints.back(), steps);
      // From its checkpoint again: training has ended.
      const std::string model = *env.ReadFile(kModel);
      Recorder again;
      const Result same = TrainWithFiles(spec, "cpu", &env, &again);
      EXPECT_EQ(same.outcome.reason, v1::STATE_REASON_NO_IMPROVEMENT);
      EXPECT_EQ(same.outcome.message, result.outcome.message);
      EXPECT_THAT(again.losses, IsEmpty());
      EXPECT_EQ(*env.ReadFile(kModel), model);
    }
  }
}

TEST(TrainerResumeTest, StopsAtATargetAndInTime) {
  FaultyEnv env;
  Recorder recorder;
  Result result = TrainWithFiles(SmallJob(2, "early_stopping { metric: \"accuracy\" target: 0 }"), "cpu",
                                 &env, &recorder);
  EXPECT_EQ(result.outcome.reason, v1::STATE_REASON_TARGET_REACHED) << result.status;
  EXPECT_EQ(recorder.epochs.size(), 1);

  FaultyEnv other;
  Recorder timed;
  result = TrainWithFiles(SmallJob(2, "epochs: 1000 early_stopping { max_seconds: 0.000001 }"), "cpu", &other,
                          &timed);
  EXPECT_EQ(result.outcome.reason, v1::STATE_REASON_TIME_LIMIT) << result.status;
  // The first step may begin within the time limit.
  EXPECT_LE(timed.losses.size(), 2);
  ASSERT_EQ(timed.epochs.size(), 1);
  EXPECT_TRUE(timed.epochs[0].has_validation());
}

TEST(TrainerResumeTest, TheBestModelMayBeTheResult) {
  // The rate is far too large: the first epoch is the best.
  v1::JobSpec spec = SmallJob(2, "best_model { export_best: true }");
  spec.mutable_training()->clear_schedule();
  spec.mutable_training()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.5);
  // The model may be larger than the remaining memory.
  class PiecesEnv : public FaultyEnv {
   public:
    absl::StatusOr<std::string> ReadFile(const std::string& path) override {
      EXPECT_TRUE(path != kBest || trained) << "the best model was read whole";
      return FaultyEnv::ReadFile(path);
    }
    std::atomic<bool> trained{false};
  };
  PiecesEnv env;
  Recorder recorder;
  const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  env.trained = true;
  EXPECT_EQ(*env.ReadFile(kModel), *env.ReadFile(kBest));
  EXPECT_EQ(recorder.best_steps.back(), result.summary.best().step());
  // A fork has only the checkpoint, and finds the best result in it.
  const std::vector<std::string> checkpoints = *ListCheckpointFiles(&env, kFolder);
  ASSERT_FALSE(checkpoints.empty());
  const auto checkpoint = ReadCheckpoint(&env, absl::StrCat(kFolder, "/", checkpoints[0]));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(IsModelOf(ParseSafetensors(*env.ReadFile(kBest))->metadata,
                        TrainingStateFromJson(checkpoint->state)->summary.best()));
  double least = recorder.epochs[0].validation().loss();
  for (const v1::EpochSummary& epoch : recorder.epochs) least = std::min(least, epoch.validation().loss());
  EXPECT_EQ(result.summary.best().value(), least);
  EXPECT_EQ(result.summary.best().metric(), "loss");
  EXPECT_TRUE(result.summary.best().validation());
}

TEST(TrainerResumeTest, TheKeptModelIsThatOfTheBestResultAfterLostSteps) {
  v1::JobSpec spec = SmallJob(1, "best_model { export_best: true }");
  spec.mutable_checkpoints()->set_every_steps(12);
  const Whole whole(spec, "cpu");
  ASSERT_THAT(whole.recorder.best_steps, ElementsAre(8, 16, 24, 32));
  FaultyEnv env;
  Recorder first;
  TrainWithFiles(spec, "cpu", &env, &first, [&](Trainer& trainer, int64_t step) {
    if (step == 20) trainer.Cancel();
  });
  ASSERT_THAT(first.best_steps, ElementsAre(8, 16));
  ASSERT_THAT(first.checkpoints, ElementsAre(12));

  // The checkpoint's best result is of step 8, and the kept model's of step 16.
  Recorder second;
  const Result paused = TrainWithFiles(spec, "cpu", &env, &second, [&](Trainer& trainer, int64_t step) {
    if (step == 13) trainer.Pause();
  });
  ASSERT_TRUE(paused.status.ok()) << paused.status;
  EXPECT_EQ(second.started, 12);
  EXPECT_LT(paused.summary.steps(), 16);
  EXPECT_EQ(paused.summary.best().step(), 16);
  EXPECT_TRUE(IsModelOf(ParseSafetensors(*env.ReadFile(kBest))->metadata, paused.summary.best()));

  Recorder third;
  const Result ended = TrainWithFiles(spec, "cpu", &env, &third);
  EXPECT_THAT(third.best_steps, ElementsAre(24, 32));
  EXPECT_EQ(ended.summary.best().value(), whole.summary.best().value());
  EXPECT_EQ(*env.ReadFile(kModel), whole.model);
}

TEST(TrainerResumeTest, AKeptModelThatCannotBeReadIsReplaced) {
  const v1::JobSpec spec = SmallJob(1, "best_model { export_best: true }");
  FaultyEnv env;
  Recorder first;
  TrainWithFiles(spec, "cpu", &env, &first, [&](Trainer& trainer, int64_t step) {
    if (step == 20) trainer.Cancel();
  });
  ASSERT_TRUE(
      WriteFileAtomically(&env, kBest, [](WritableFile& file) { return file.Append("no model"); }).ok());
  Recorder second;
  const Result ended = TrainWithFiles(spec, "cpu", &env, &second);
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_THAT(second.notices, Contains(HasSubstr("of step 16, cannot be used: ")));
  EXPECT_EQ(second.best_steps.front(), 24);
  EXPECT_TRUE(IsModelOf(ParseSafetensors(*env.ReadFile(kModel))->metadata, ended.summary.best()));
}

TEST(TrainerResumeTest, ACheckpointThatCannotBeWrittenIsToldAndTrainingGoesOn) {
  class FullEnv : public FaultyEnv {
   public:
    absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
      if (full && path.find("checkpoint") != std::string::npos) {
        return absl::ResourceExhaustedError("no space left on device");
      }
      return FaultyEnv::CreateFile(path);
    }
    std::atomic<bool> full{false};
  };
  FullEnv env;
  Recorder recorder;
  const Result result = TrainWithFiles(SmallJob(1), "cpu", &env, &recorder, [&](Trainer&, int64_t step) {
    // Meanwhile the checkpoint of the first epoch is written.
    while (step == 12 && !env.ReadFile(CheckpointPath(8)).ok()) std::this_thread::yield();
    if (step == 12) env.full = true;
  });
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.outcome.reason, v1::STATE_REASON_COMPLETED);
  EXPECT_THAT(recorder.checkpoints, ElementsAre(8));
  ASSERT_EQ(recorder.notices.size(), 3);
  EXPECT_THAT(recorder.notices[0],
              HasSubstr("The checkpoint of step 16 could not be written: no space left"));
  EXPECT_THAT(recorder.notices[0], HasSubstr("from the checkpoint of step 8"));
  EXPECT_EQ(result.summary.checkpoint_step(), 8);
}

TEST(TrainerResumeTest, ANumberThatIsNotFiniteNamesTheLastGoodCheckpoint) {
  // The rate becomes absurd in the second epoch.
  v1::JobSpec spec = SmallJob(2);
  spec.mutable_training()->mutable_schedule()->Clear();
  v1::PiecewiseConstantSchedule& schedule =
      *spec.mutable_training()->mutable_schedule()->mutable_piecewise_constant();
  schedule.add_boundaries(1);
  schedule.add_factors(1);
  schedule.add_factors(1e35);
  FaultyEnv env;
  Recorder recorder;
  const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kOutOfRange) << result.status;
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("the last good checkpoint is that of step 8"));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr(" step "));
  EXPECT_EQ(result.summary.checkpoint_step(), 8);
  EXPECT_EQ(result.summary.epochs(), 1);
}

// For example a changed job in the folder of a longer job.
TEST(TrainerResumeTest, ACheckpointPastTheEndIsRefused) {
  FaultyEnv env;
  Recorder first;
  ASSERT_TRUE(TrainWithFiles(SmallJob(2), "cpu", &env, &first).status.ok());
  const std::string model = *env.ReadFile(kModel);
  for (const auto& [length, field] :
       {std::pair("epochs: 3", "training.epochs"), {"steps: 31", "training.steps"}}) {
    Recorder second;
    const Result result = TrainWithFiles(SmallJob(2, length), "cpu", &env, &second);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition) << result.status;
    EXPECT_THAT(result.status.message(), HasSubstr(absl::StrCat("the checkpoint of step 32 in ", kFolder,
                                                                ": the job ends with step ")));
    EXPECT_THAT(result.status.message(), HasSubstr(absl::StrCat("raise ", field)));
    EXPECT_EQ(second.started, -1);
    EXPECT_EQ(*env.ReadFile(kModel), model);
  }
}

TEST(TrainerResumeTest, ACheckpointThatDoesNotFitIsRefused) {
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(SmallJob(1), "cpu", &env, &recorder).status.ok());
  const std::string good = *env.ReadFile(CheckpointPath(32));
  const auto refuse = [&](const v1::JobSpec& spec) {
    Recorder ignored;
    const absl::Status status = TrainWithFiles(spec, "cpu", &env, &ignored).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(ignored.started, -1);
    return std::string(status.message());
  };
  v1::JobSpec other = SmallJob(1);
  other.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_filters(4);
  EXPECT_THAT(refuse(other), HasSubstr("the checkpoint is of another job"));
  ASSERT_TRUE(WriteFileAtomically(&env, CheckpointPath(32), [&](WritableFile& file) {
                return file.Append(good.substr(0, good.size() - 1));
              }).ok());
  EXPECT_THAT(refuse(SmallJob(1)), HasSubstr(CheckpointPath(32)));
}

}  // namespace
}  // namespace tandem
