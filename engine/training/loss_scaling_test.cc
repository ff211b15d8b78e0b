// Trainings with a scaled loss, on reference devices with float64. A scale near float64's maximum makes
// gradients overflow as in float16. Powers of two change no bit of them.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/faulty_env.h"
#include "engine/base/testing/from_text.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr double kHuge = 0x1p1020;

// A job with large gradients: scaled by kHuge, they overflow.
v1::JobSpec Steep(int replicas) {
  v1::JobSpec spec = SmallLenet(replicas);
  spec.mutable_dataset()->mutable_normalization()->add_standard_deviation(1e-3);
  spec.mutable_training()->mutable_optimizer()->mutable_adam();
  spec.mutable_training()->mutable_weight_average()->set_decay(0.5);
  return spec;
}

void ScaleBy(double scale, int64_t growth_interval, v1::JobSpec* spec) {
  v1::Training* training = spec->mutable_training();
  training->set_precision(v1::PRECISION_FLOAT16);
  training->mutable_loss_scaling()->set_initial_scale(scale);
  training->mutable_loss_scaling()->set_growth_interval(growth_interval);
}

TrainingRecorder Record(const v1::JobSpec& spec) {
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "reference", &recorder);
  EXPECT_TRUE(status.ok()) << status;
  return recorder;
}

std::vector<double> Scales(const TrainingRecorder& recorder) {
  std::vector<double> scales;
  for (const v1::Progress& report : recorder.progress) scales.push_back(report.loss_scale());
  return scales;
}

TEST(LossScalingTest, AScaledLossTrainsAsItselfAndItsScaleGrows) {
  for (const char* optimizer :
       {"nesterov { learning_rate: 0.05 weight_decay: 0.001 } clip { norm: 0.5 }", "adamw {}"}) {
    for (const int replicas : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(optimizer, " ", replicas));
      v1::JobSpec spec = SmallLenet(replicas);
      // With whole batches, all replicas' shares are halves, and multiplying by them is exact.
      spec.mutable_dataset()->mutable_synthetic()->set_train_samples(64);
      *spec.mutable_training()->mutable_optimizer() = FromText<v1::Optimizer>(optimizer);
      spec.mutable_training()->set_accumulation_steps(replicas == 1 ? 2 : 1);
      const TrainingRecorder plain = Record(spec);
      ScaleBy(1024, 10, &spec);
      const TrainingRecorder scaled = Record(spec);
      ASSERT_EQ(scaled.progress.size(), plain.progress.size());
      for (size_t i = 0; i < plain.progress.size(); ++i) {
        EXPECT_EQ(scaled.losses()[i], plain.losses()[i]) << i;
        EXPECT_EQ(plain.progress[i].loss_scale(), 0);
        EXPECT_EQ(scaled.progress[i].loss_scale(), i < 9 ? 1024 : i < 19 ? 2048 : 4096) << i;
      }
      for (const v1::EpochSummary& epoch : scaled.epochs) EXPECT_EQ(epoch.skipped_steps(), 0);
    }
  }
}

// Every step sees the same samples. So the steps after skipped steps equal the steps of a training without
// skips.
TEST(LossScalingTest, AStepWhoseGradientsAreNotFiniteIsAsIfItWereNot) {
  for (const char* optimizer :
       {"momentum { learning_rate: 1e-7 dampening: 0.5 }", "adam {}", "nadam {}", "muon {}"}) {
    SCOPED_TRACE(optimizer);
    v1::JobSpec spec = Steep(1);
    v1::Training* training = spec.mutable_training();
    *training->mutable_optimizer() = FromText<v1::Optimizer>(optimizer);
    training->set_global_batch_size(61);
    training->set_shuffle(false);
    training->set_epochs(25);
    const TrainingRecorder plain = Record(spec);
    ScaleBy(kHuge, 1000, &spec);
    const TrainingRecorder scaled = Record(spec);
    ASSERT_EQ(scaled.epochs.size(), 25);
    double scale = kHuge;
    size_t taken = 0;
    for (size_t i = 0; i < 25; ++i) {
      EXPECT_EQ(scaled.losses()[i], plain.losses()[taken]) << i;
      if (scaled.epochs[i].skipped_steps() == 0) {
        // By the average of the weights.
        EXPECT_EQ(scaled.epochs[i].validation().loss(), plain.epochs[taken].validation().loss()) << i;
        ++taken;
      } else {
        EXPECT_EQ(scaled.epochs[i].skipped_steps(), 1);
        scale /= 2;
      }
      EXPECT_EQ(scaled.progress[i].loss_scale(), scale) << i;
    }
    EXPECT_GT(taken, 5);
    EXPECT_LT(taken, 25);
  }
}

TEST(LossScalingTest, APausedTrainingEndsBitForBitWhereAWholeOneDoes) {
  for (const int replicas : {1, 3}) {
    v1::JobSpec spec = Steep(replicas);
    ScaleBy(kHuge, 5, &spec);
    Whole whole(spec, "reference");
    ASSERT_GT(whole.recorder.epochs[0].skipped_steps(), 1);
    // During the skipped steps, and later.
    for (const int64_t pause : {1, 11}) {
      SCOPED_TRACE(absl::StrCat(replicas, " ", pause));
      FaultyEnv env;
      Recorder first;
      const Result paused =
          TrainWithFiles(spec, "reference", &env, &first, [&](Trainer& trainer, int64_t step) {
            if (step == pause) trainer.Pause();
          });
      ASSERT_EQ(paused.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED) << paused.status;
      Recorder second;
      const Result resumed = TrainWithFiles(spec, "reference", &env, &second);
      ASSERT_TRUE(resumed.status.ok()) << resumed.status;
      EXPECT_EQ(*env.ReadFile(kModel), whole.model);
      std::vector<v1::EpochSummary> epochs = first.epochs;
      epochs.insert(epochs.end(), second.epochs.begin(), second.epochs.end());
      ASSERT_EQ(epochs.size(), whole.recorder.epochs.size());
      for (size_t i = 0; i < epochs.size(); ++i) {
        EXPECT_EQ(epochs[i].skipped_steps(), whole.recorder.epochs[i].skipped_steps()) << i;
      }
    }
  }
}

TEST(LossScalingTest, ReplicasThatStepAloneHaveAScaleEachUntilTheyAreAveraged) {
  for (const bool averages_state : {true, false}) {
    v1::JobSpec spec = Steep(2);
    v1::ParameterAveraging* averaging = spec.mutable_replicas()->mutable_parameter_averaging();
    averaging->set_every_iterations(4);
    averaging->set_average_optimizer_state(averages_state);
    ScaleBy(kHuge, 1000, &spec);
    const TrainingRecorder recorder = Record(spec);
    ASSERT_EQ(recorder.epochs.size(), 3);
    EXPECT_GT(recorder.epochs[0].skipped_steps(), 0);
    EXPECT_EQ(recorder.epochs[2].skipped_steps(), 0);
    const std::vector<double> scales = Scales(recorder);
    EXPECT_LT(scales.back(), kHuge);
    EXPECT_EQ(scales.back(), scales[scales.size() - 2]);
  }
}

TEST(LossScalingTest, ATrainingThatLearnsNothingEnds) {
  v1::JobSpec spec = Steep(1);
  ScaleBy(kHuge, 10, &spec);
  spec.mutable_training()->mutable_loss_scaling()->set_backoff_factor(0.9999);
  spec.mutable_training()->clear_epochs();
  spec.mutable_training()->set_steps(300);
  spec.mutable_training()->mutable_report()->set_every_steps(7);
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "reference", &recorder);
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("the gradients of the last 200 steps, up to step 200, are not finite"));
}

TEST(LossScalingTest, ALossThatIsNotFiniteEndsTheTrainingAllTheSame) {
  v1::JobSpec spec = SmallLenet(1);
  spec.mutable_training()->mutable_optimizer()->mutable_nesterov()->set_learning_rate(1e200);
  ScaleBy(1024, 10, &spec);
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "reference", &recorder);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("the training loss is"));
}

}  // namespace
}  // namespace tandem
