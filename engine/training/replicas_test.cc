// Trainings with several replicas: both ways of averaging, unequal shares, and batch normalisation over all
// replicas.

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/faulty_env.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/layers/model_template.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<double> LossesOf(const v1::JobSpec& spec, const std::string& kind) {
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, kind, &recorder);
  EXPECT_TRUE(status.ok()) << status;
  return recorder.losses();
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(std::abs(actual[i] - expected[i]) <= tolerance)
        << "loss " << i << ": " << actual[i] << " is not " << expected[i];
  }
}

// Checks that the first 20 losses do not depend on the number of replicas. Some replicas have no samples of a
// batch.
void ExpectSameLosses(const v1::JobSpec& job, const std::string& kind, double tolerance) {
  v1::JobSpec spec = job;
  spec.mutable_training()->clear_epochs();
  spec.mutable_training()->set_steps(20);
  spec.mutable_replicas()->set_count(1);
  const std::vector<double> expected = LossesOf(spec, kind);
  ASSERT_THAT(expected, SizeIs(20));
  for (const int replicas : {2, 4, 8}) {
    SCOPED_TRACE(absl::StrCat(replicas, " replicas on ", kind));
    spec.mutable_replicas()->set_count(replicas);
    ExpectNear(LossesOf(spec, kind), expected, tolerance);
  }
}

// Sets `sync` in the message and in all messages within it.
void SynchronizeBatchNorms(google::protobuf::Message* message) {
  if (auto* norm = dynamic_cast<v1::BatchNorm*>(message); norm != nullptr) norm->set_sync(true);
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      SynchronizeBatchNorms(reflection.MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      SynchronizeBatchNorms(reflection.MutableRepeatedMessage(message, field, i));
    }
  }
}

// A job of template `model` on 61 square images of `side` pixels: batches of 8, and 5 in the last.
v1::JobSpec JobOfTemplate(const v1::ModelTemplate& model, int64_t side) {
  v1::JobSpec spec = SmallLenet(1);
  v1::SyntheticSource* data = spec.mutable_dataset()->mutable_synthetic();
  for (int i = 1; i < 3; ++i) data->set_shape(i, side);
  spec.mutable_model()->Clear();
  *spec.mutable_model()->mutable_template_() = model;
  const absl::Status expanded =
      ExpandTemplate({.sample = Shape({1, side, side}), .outputs = 4}, spec.mutable_model());
  EXPECT_TRUE(expanded.ok()) << expanded;
  return spec;
}

// Deeplearning4j's LeNet, for 28x28 pixels.
v1::JobSpec WholeLenet() {
  v1::ModelTemplate model;
  model.mutable_lenet();
  v1::JobSpec spec = JobOfTemplate(model, 28);
  // With a higher rate its losses diverge.
  spec.mutable_training()->mutable_optimizer()->mutable_nesterov()->set_learning_rate(0.005);
  return spec;
}

v1::JobSpec NarrowResnet(int64_t width = 2, int64_t side = 8) {
  v1::ModelTemplate model;
  model.mutable_resnet18()->set_width(width);
  v1::JobSpec spec = JobOfTemplate(model, side);
  SynchronizeBatchNorms(spec.mutable_model());
  return spec;
}

TEST(ReplicasTest, TheNumberOfReplicasDoesNotShowInAllReduce) {
  ExpectSameLosses(SmallLenet(1), "reference", 1e-8);
}

TEST(ReplicasTest, NorInAWholeLenet) { ExpectSameLosses(WholeLenet(), "reference", 1e-8); }

TEST(ReplicasTest, NorWithSynchronizedBatchNormalization) {
  ExpectSameLosses(NarrowResnet(), "reference", 1e-8);
  ExpectSameLosses(NarrowResnet(/*width=*/4, /*side=*/16), "reference", 1e-8);
}

// Samples of class 1 have weight 0, and the other classes have different weights.
v1::JobSpec Weighted(v1::JobSpec spec) {
  *spec.mutable_training()->mutable_loss() =
      FromText<v1::Loss>("softmax_cross_entropy { class_weights: [1, 1, 3, 0.25] ignore_index: 1 }");
  return spec;
}

TEST(ReplicasTest, NorInAWeightedLoss) {
  ExpectSameLosses(Weighted(SmallLenet(1)), "reference", 1e-8);
  ExpectSameLosses(Weighted(NarrowResnet()), "reference", 1e-8);
}

TEST(ReplicasTest, NorDoPartsShowInAWeightedLoss) {
  v1::JobSpec spec = Weighted(SmallLenet(1));
  const std::vector<double> expected = LossesOf(spec, "reference");
  // A replica of three may have two samples of a batch, so it has at most two parts.
  for (const auto& [replicas, parts] : {std::pair(1, 2), std::pair(1, 3), std::pair(1, 8), std::pair(3, 2)}) {
    spec.mutable_replicas()->set_count(replicas);
    spec.mutable_training()->set_accumulation_steps(parts);
    ExpectNear(LossesOf(spec, "reference"), expected, 1e-9);
  }
}

TEST(ReplicasTest, SynchronizedBatchNormalizationOnTheCpu) {
  // Rounding differences appear later.
  v1::JobSpec spec = NarrowResnet();
  spec.mutable_training()->clear_epochs();
  spec.mutable_training()->set_steps(2);
  const std::vector<double> expected = LossesOf(spec, "reference");
  for (const int replicas : {2, 8}) {
    spec.mutable_replicas()->set_count(replicas);
    ExpectNear(LossesOf(spec, "cpu"), expected, 1e-3);
  }
}

TEST(ReplicasTest, SynchronizedStatisticsAreAlikeInReplicasWithoutSamples) {
  v1::JobSpec spec = SmallJob(8, "epochs: 1");
  SynchronizeBatchNorms(spec.mutable_model());
  for (const char* kind : {"reference", "cpu"}) {
    FaultyEnv env;
    Recorder recorder;
    const Result result = TrainWithFiles(spec, kind, &env, &recorder);
    ASSERT_TRUE(result.status.ok()) << result.status;
    const absl::StatusOr<SafetensorsContents> file = ParseSafetensors(*env.ReadFile(CheckpointPath(8)));
    ASSERT_TRUE(file.ok()) << file.status();
    for (const char* name : {"batch_norm_1.running_mean", "batch_norm_1.running_var"}) {
      const Tensor first = file->Find(absl::StrCat("replica/0/", name))->CastTo(DType::kFloat64);
      for (const int rank : {3, 7}) {
        const Tensor other = file->Find(absl::StrCat("replica/", rank, "/", name))->CastTo(DType::kFloat64);
        EXPECT_THAT(other.data<double>(), testing::ElementsAreArray(first.data<double>())) << kind << name;
      }
    }
  }
}

TEST(ReplicasTest, SynchronizedBatchNormalizationIsRefusedWhereReplicasAreApart) {
  v1::JobSpec spec = SmallJob(2, "accumulation_steps: 2");
  SynchronizeBatchNorms(spec.mutable_model());
  TrainingRecorder recorder;
  EXPECT_THAT(std::string(Train(spec, "cpu", &recorder).message()), HasSubstr("batch_norm.sync"));
  spec.mutable_training()->set_accumulation_steps(1);
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(2);
  EXPECT_THAT(std::string(Train(spec, "cpu", &recorder).message()), HasSubstr("batch_norm.sync"));
}

TEST(ReplicasTest, LoadsDoNotShowInAllReduce) {
  v1::JobSpec spec = SmallLenet(1);
  const std::vector<double> expected = LossesOf(spec, "reference");
  for (const double last : {0.5, 0.0}) {
    spec.mutable_replicas()->Clear();
    for (const double load : {1.0, 2.0, last}) spec.mutable_replicas()->add_worker_load(load);
    TrainingRecorder recorder;
    ASSERT_TRUE(Train(spec, "reference", &recorder).ok());
    ExpectNear(recorder.losses(), expected, 1e-10);
    // An epoch has 61 samples. A replica with load 0 does not exist.
    const auto& shares = recorder.epochs[0].replicas();
    ASSERT_EQ(shares.size(), last > 0 ? 3 : 2);
    EXPECT_GT(shares[1].samples(), shares[0].samples());
    EXPECT_NEAR(shares[1].load(), 2 / (3 + last), 1e-12);
    EXPECT_EQ(recorder.epochs[0].averagings(), 0);
  }
}

// Ops on the gradients of all replicas before a step, and on the parts of a step.
TEST(ReplicasTest, UnequalLoadsDoNotShowInStepsThatClipDecayAndAccumulate) {
  v1::JobSpec spec = SmallLenet(1);
  v1::Training& training = *spec.mutable_training();
  training.clear_epochs();
  training.set_steps(12);
  training.set_accumulation_steps(3);
  // Each part of each replica's share has a sample.
  training.set_global_batch_size(24);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(72);
  training.mutable_optimizer()->mutable_nesterov()->set_learning_rate(0.1);
  training.mutable_optimizer()->mutable_nesterov()->set_weight_decay(0.01);
  training.mutable_optimizer()->mutable_clip()->set_norm(0.05);
  const std::vector<double> expected = LossesOf(spec, "reference");
  ASSERT_THAT(expected, SizeIs(12));
  v1::JobSpec unclipped = spec;
  unclipped.mutable_training()->mutable_optimizer()->clear_clip();
  EXPECT_GT(std::abs(LossesOf(unclipped, "reference").back() - expected.back()), 0.01);

  for (const double load : {1.0, 2.0, 0.75}) spec.mutable_replicas()->add_worker_load(load);
  spec.mutable_replicas()->clear_count();
  ExpectNear(LossesOf(spec, "reference"), expected, 1e-9);
  ExpectNear(LossesOf(spec, "cpu"), expected, 1e-4);
  // bfloat16 represents a number to 0.4 %, and rounds in each layer.
  training.set_precision(v1::PRECISION_BFLOAT16);
  ExpectNear(LossesOf(spec, "cpu"), expected, 0.01);
}

TEST(ReplicasTest, BucketsDoNotShowInAllReduce) {
  v1::JobSpec spec = SmallLenet(2);
  const std::vector<double> expected = LossesOf(spec, "cpu");
  spec.mutable_replicas()->mutable_all_reduce()->set_bucket_bytes(100);
  EXPECT_EQ(LossesOf(spec, "cpu"), expected);
}

// Averages parameters. Plain gradient descent makes steps add up.
v1::JobSpec AveragingJob(int replicas, int64_t every_iterations) {
  v1::JobSpec spec = SmallLenet(replicas);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(64);
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.05);
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(every_iterations);
  return spec;
}

TEST(ReplicasTest, AveragingEachStepOfGradientDescentIsAllReduce) {
  for (const int replicas : {2, 4}) {
    v1::JobSpec spec = AveragingJob(replicas, 1);
    TrainingRecorder averaged;
    ASSERT_TRUE(Train(spec, "reference", &averaged).ok());
    spec.mutable_replicas()->mutable_all_reduce();
    TrainingRecorder reduced;
    ASSERT_TRUE(Train(spec, "reference", &reduced).ok());
    ExpectNear(averaged.losses(), reduced.losses(), 1e-12);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(averaged.epochs[i].validation().loss(), reduced.epochs[i].validation().loss(), 1e-12);
      EXPECT_EQ(averaged.epochs[i].averagings(), 8 * static_cast<int64_t>(i + 1));
    }
  }
}

TEST(ReplicasTest, EveryReplicaStepsAloneBetweenAveragings) {
  // Reports come only at averagings and at the ends of epochs.
  v1::JobSpec spec = AveragingJob(3, 3);
  spec.mutable_training()->mutable_report()->set_every_steps(1000);
  spec.mutable_replicas()->mutable_parameter_averaging()->set_report_score_after_averaging(true);
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
  std::vector<int64_t> steps, averagings;
  for (const v1::Progress& progress : recorder.progress) {
    steps.push_back(progress.step());
    averagings.push_back(progress.averagings());
  }
  EXPECT_THAT(steps, ElementsAre(3, 6, 8, 11, 14, 16, 19, 22, 24));
  EXPECT_THAT(averagings, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(recorder.epochs[2].training().samples(), 64);
  EXPECT_LT(recorder.epochs[2].training().loss(), recorder.epochs[0].training().loss());
  // The result differs from averaging at each step.
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(1);
  TrainingRecorder often;
  ASSERT_TRUE(Train(spec, "cpu", &often).ok());
  EXPECT_NE(often.epochs[2].training().loss(), recorder.epochs[2].training().loss());
}

// Returns the losses of an optimizer whose gradient is always -1, with a state for each replica. With three
// samples in batches of two, the second replica has no samples of an epoch's last batch.
std::vector<double> LossesOfStepsWithoutSamples(const std::string& optimizer) {
  const std::string table = testing::TempDir() + "/three.csv";
  std::ofstream(table) << "x,y\n1,1000\n1,1000\n1,1000\n";
  const v1::JobSpec spec = FromText<v1::JobSpec>(absl::StrCat("dataset { csv { train: '", table,
                                                              R"(' targets: TARGET_KIND_VALUES } }
        model {
          input { shape: 1 }
          layers { dense { units: 1 use_bias: false weight_initializer { zeros {} } } }
        }
        training {
          loss { l1 {} }
          optimizer { )",
                                                              optimizer, R"( }
          global_batch_size: 2
          epochs: 2
          report { every_steps: 1 }
        }
        replicas { count: 2 parameter_averaging { every_iterations: 1 average_optimizer_state: false } })"));
  return LossesOf(spec, "reference");
}

// A step of Adam is sqrt((1 - 0.5^k) / (1 - 0.5^t)) after k updates of its state.
TEST(ReplicasTest, StepsWithoutSamplesCountForAReplicasOwnState) {
  // At the third step k is 3 and 2, and t is 3 for both replicas.
  const double third = (1 + std::sqrt(0.75 / 0.875)) / 2;
  ExpectNear(LossesOfStepsWithoutSamples("adam { learning_rate: 1 beta1: 0.5 beta2: 0.5 epsilon: 1e-30 }"),
             {1000, 999, 998, 998 - third}, 1e-9);
}

TEST(ReplicasTest, StepsWithoutSamplesCountForTheMomentaOfNadam) {
  const auto mu = [](int t) { return 0.5 * (1 - 0.5 * std::pow(0.96, 10 * t)); };
  const double product[] = {1, mu(1), mu(1) * mu(2), mu(1) * mu(2) * mu(3), mu(1) * mu(2) * mu(3) * mu(4)};
  // Returns step t after k updates of the state.
  const auto step = [&](int k, int t) {
    const double m = 1 - std::pow(0.5, k);
    const double vhat = m / (1 - std::pow(0.5, t));
    return (mu(t + 1) * m / (1 - product[t + 1]) + (1 - mu(t)) / (1 - product[t])) / std::sqrt(vhat);
  };
  const double second = 1000 - step(1, 1);
  const double third = second - step(2, 2);
  ExpectNear(LossesOfStepsWithoutSamples(
                 "nadam { learning_rate: 1 beta1: 0.5 beta2: 0.5 epsilon: 1e-30 momentum_decay: 10 }"),
             {1000, second, third, third - (step(3, 3) + step(2, 3)) / 2}, 1e-9);
}

void ExpectResumesBitForBit(const v1::JobSpec& spec, const std::string& kind) {
  Whole whole(spec, kind);
  for (const int64_t pause : {1, 8, 12}) {
    SCOPED_TRACE(absl::StrCat(kind, ", paused at ", pause));
    FaultyEnv env;
    Recorder first;
    const Result paused = TrainWithFiles(spec, kind, &env, &first, [&](Trainer& trainer, int64_t step) {
      if (step == pause) trainer.Pause();
    });
    ASSERT_TRUE(paused.status.ok()) << paused.status;
    ASSERT_EQ(paused.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED);
    Recorder second;
    const Result resumed = TrainWithFiles(spec, kind, &env, &second);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    EXPECT_EQ(second.started, paused.summary.steps());
    EXPECT_TRUE(*env.ReadFile(kModel) == whole.model);
    std::vector<double> losses = first.losses;
    losses.insert(losses.end(), second.losses.begin(), second.losses.end());
    EXPECT_EQ(losses, whole.recorder.losses);
    EXPECT_EQ(second.epochs.back().validation().loss(), whole.recorder.epochs.back().validation().loss());
  }
}

TEST(ReplicasTest, APauseBetweenAveragingsChangesNothing) {
  for (const bool averages_state : {true, false}) {
    for (const char* kind : {"cpu", "reference"}) {
      v1::JobSpec spec = SmallJob(3, "weight_average { decay: 0.9 } best_model { export_best: false }");
      v1::ParameterAveraging& averaging = *spec.mutable_replicas()->mutable_parameter_averaging();
      averaging.set_every_iterations(5);
      averaging.set_average_optimizer_state(averages_state);
      ExpectResumesBitForBit(spec, kind);
    }
  }
}

TEST(ReplicasTest, AveragingWorksWithPartsLoadsAndValidationWithinEpochs) {
  v1::JobSpec spec = SmallJob(3, "epochs: 2 accumulation_steps: 2 validation { every_steps: 3 }");
  spec.mutable_replicas()->clear_count();
  for (const double load : {1.0, 0.5, 0.75}) spec.mutable_replicas()->add_worker_load(load);
  v1::ParameterAveraging& averaging = *spec.mutable_replicas()->mutable_parameter_averaging();
  averaging.set_every_iterations(4);
  averaging.set_weighted_by_load(true);
  Recorder recorder;
  FaultyEnv env;
  const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  // After 3, 6, 9, 12, 15 and 16 steps.
  EXPECT_EQ(recorder.validations.size() + recorder.epochs.size(), 7);
  for (const v1::ValidationResult& validation : recorder.validations) {
    EXPECT_EQ(validation.validation().samples(), 27);
  }
  EXPECT_EQ(recorder.epochs.back().averagings(), 4);
}

TEST(ReplicasTest, CheckpointsBetweenAveragingsHaveEachReplicaWhole) {
  v1::JobSpec spec = SmallJob(2, "steps: 8");
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(5);
  spec.mutable_checkpoints()->set_every_steps(3);
  FaultyEnv env;
  Recorder recorder;
  const Result broken = TrainWithFiles(spec, "cpu", &env, &recorder, [](Trainer& trainer, int64_t step) {
    if (step == 4) trainer.Cancel();
  });
  EXPECT_EQ(broken.status.code(), absl::StatusCode::kCancelled);
  absl::StatusOr<SafetensorsContents> between = ParseSafetensors(*env.ReadFile(CheckpointPath(3)));
  ASSERT_TRUE(between.ok()) << between.status();
  EXPECT_NE(between->Find("replica/0/dense_1.weight"), nullptr);
  EXPECT_NE(between->Find("replica/1/dense_1.weight"), nullptr);
  EXPECT_EQ(between->Find("shared/dense_1.weight"), nullptr);

  // Replicas are averaged at the end of the epoch.
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &recorder).status.ok());
  between = ParseSafetensors(*env.ReadFile(CheckpointPath(8)));
  ASSERT_TRUE(between.ok()) << between.status();
  EXPECT_NE(between->Find("shared/dense_1.weight"), nullptr);
  EXPECT_EQ(between->Find("replica/1/dense_1.weight"), nullptr);
}

TEST(ReplicasTest, AnotherNumberOfReplicasBeginsWithTheMeanAndSaysSo) {
  v1::JobSpec spec = SmallJob(2);
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(5);
  FaultyEnv env;
  Recorder first;
  const Result paused = TrainWithFiles(spec, "cpu", &env, &first, [](Trainer& trainer, int64_t step) {
    if (step == 2) trainer.Pause();
  });
  ASSERT_EQ(paused.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED);

  spec.mutable_replicas()->set_count(3);
  Recorder second;
  const Result resumed = TrainWithFiles(spec, "cpu", &env, &second);
  ASSERT_TRUE(resumed.status.ok()) << resumed.status;
  EXPECT_THAT(second.notices, Contains(HasSubstr("is of 2 replicas, and this job has 3")));
  EXPECT_EQ(second.started, paused.summary.steps());
  EXPECT_EQ(second.epochs[0].training().samples(), 61);
  EXPECT_EQ(second.epochs[0].replicas_size(), 3);
  // The same holds for all-reduced gradients.
  spec = SmallJob(1);
  Recorder one, four;
  FaultyEnv other;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &other, &one, [](Trainer& trainer, int64_t step) {
                if (step == 2) trainer.Pause();
              }).status.ok());
  spec.mutable_replicas()->set_count(4);
  const Result more = TrainWithFiles(spec, "cpu", &other, &four);
  ASSERT_TRUE(more.status.ok()) << more.status;
  EXPECT_EQ(more.outcome.reason, v1::STATE_REASON_COMPLETED);
  EXPECT_THAT(four.notices, Contains(HasSubstr("is of 1 replica, and this job has 4")));
}

// More replicas than devices share the devices.
TEST(ReplicasTest, ReplicasMayShareADevice) {
  const v1::JobSpec spec = SmallLenet(4);
  const std::vector<double> expected = LossesOf(spec, "cpu");
  TrainingRecorder recorder;
  Trainer::Options options = OptionsFor(spec, "cpu", &recorder);
  for (int rank = 0; rank < 4; ++rank) options.devices[rank].set_name(absl::StrCat("devices/cpu:", rank % 2));
  const absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  ASSERT_TRUE((*trainer)->Run().ok());
  EXPECT_EQ(recorder.losses(), expected);
  EXPECT_EQ(recorder.epochs[0].replicas(3).device(), "devices/cpu:1");
}

TEST(ReplicasTest, SixteenReplicasWorkBothWays) {
  v1::JobSpec spec = SmallLenet(16);
  spec.mutable_training()->set_global_batch_size(16);
  spec.mutable_training()->set_epochs(1);
  EXPECT_THAT(LossesOf(spec, "cpu"), SizeIs(4));
  spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(2);
  EXPECT_THAT(LossesOf(spec, "cpu"), SizeIs(4));
}

}  // namespace
}  // namespace tandem
