#include "engine/training/trainer.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, size_t count, double tolerance) {
  ASSERT_GE(a.size(), count);
  ASSERT_GE(b.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_FALSE(!(std::abs(a[i] - b[i]) <= tolerance)) << "step " << i << ": " << a[i] << " and " << b[i];
  }
}

TEST(TrainerTest, OnTheOracleReplicasChangeNothing) {
  TrainingRecorder one;
  ASSERT_TRUE(Train(SmallLenet(1), "reference", &one).ok());
  EXPECT_EQ(one.losses().size(), 24);
  for (const int replicas : {2, 3, 5}) {
    SCOPED_TRACE(replicas);
    TrainingRecorder several;
    const absl::Status status = Train(SmallLenet(replicas), "reference", &several);
    ASSERT_TRUE(status.ok()) << status;
    ExpectNear(one.losses(), several.losses(), 20, 1e-8);
    ASSERT_EQ(several.epochs.size(), 3);
    for (int e = 0; e < 3; ++e) {
      EXPECT_NEAR(one.epochs[e].validation().loss(), several.epochs[e].validation().loss(), 1e-8);
      EXPECT_EQ(one.epochs[e].validation().metrics().at("accuracy"),
                several.epochs[e].validation().metrics().at("accuracy"));
      EXPECT_EQ(several.epochs[e].validation().samples(), 27);
      EXPECT_EQ(several.epochs[e].training().samples(), 61);
    }
  }
}

TEST(TrainerTest, TheCpuFollowsTheOracle) {
  TrainingRecorder oracle;
  ASSERT_TRUE(Train(SmallLenet(1), "reference", &oracle).ok());
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    TrainingRecorder cpu;
    const absl::Status status = Train(SmallLenet(replicas), "cpu", &cpu);
    ASSERT_TRUE(status.ok()) << status;
    ExpectNear(oracle.losses(), cpu.losses(), 3, 1e-4);
  }
}

TEST(TrainerTest, TheSameJobTwiceGivesTheSameBits) {
  for (const int replicas : {1, 2}) {
    std::string models[2];
    std::vector<double> losses[2];
    for (int run = 0; run < 2; ++run) {
      TrainingRecorder recorder;
      const std::string path =
          absl::StrCat(::testing::TempDir(), "/model_", replicas, "_", run, ".safetensors");
      ASSERT_TRUE(Train(SmallLenet(replicas), "cpu", &recorder, path).ok());
      const absl::StatusOr<SafetensorsContents> read = ReadSafetensors(path);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->metadata.at("framework"), "tandem");
      EXPECT_THAT(read->metadata.at("job"), HasSubstr("\"global_batch_size\""));
      EXPECT_EQ(read->tensors.size(), 8);
      for (const auto& [name, tensor] : read->tensors) {
        EXPECT_EQ(tensor.dtype(), DType::kFloat32);
        models[run].append(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
      }
      EXPECT_EQ(read->Find("conv2d_2.weight")->shape(), Shape({6, 4, 2, 2}));
      losses[run] = recorder.losses();
    }
    EXPECT_EQ(models[0], models[1]);
    EXPECT_EQ(losses[0], losses[1]);
  }
}

TEST(TrainerTest, ItLearns) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(300);
  spec.mutable_training()->set_epochs(20);
  spec.mutable_training()->mutable_optimizer()->mutable_nesterov()->set_learning_rate(0.01);
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
  EXPECT_LT(recorder.epochs.back().training().loss(), 0.25);
  EXPECT_GT(recorder.epochs.back().validation().metrics().at("accuracy"), 0.85);
}

// A narrow residual network with batch normalisation.
v1::JobSpec SmallResnet(int replicas) {
  v1::JobSpec spec = SmallLenet(replicas);
  *spec.mutable_model() = FromText<v1::Model>(R"(
    input { shape: [1, 12, 12] }
    layers { conv2d { filters: 4 kernel: 3 padding: 1 } }
    layers { name: "norm" batch_norm { activation: ACTIVATION_RELU } }
    layers { repeat { count: 2 layers { residual {
      layers { conv2d { filters: 4 kernel: 3 padding: 1 } }
      layers { batch_norm {} }
      activation: ACTIVATION_RELU
    } } } }
    layers { residual {
      layers { conv2d { filters: 6 kernel: 3 padding: 1 stride: 2 } }
      layers { batch_norm {} }
      shortcut { conv2d { filters: 6 kernel: 1 stride: 2 } }
      activation: ACTIVATION_RELU
    } }
    layers { global_average_pool2d {} }
    layers { dense { units: 4 } })");
  return spec;
}

TEST(TrainerTest, BatchNormTrainsOnTheCpuAsOnTheOracle) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    TrainingRecorder oracle, cpu;
    const std::string path = absl::StrCat(::testing::TempDir(), "/norm_", replicas, ".safetensors");
    absl::Status status = Train(SmallResnet(replicas), "reference", &oracle, path);
    ASSERT_TRUE(status.ok()) << status;
    status = Train(SmallResnet(replicas), "cpu", &cpu);
    ASSERT_TRUE(status.ok()) << status;
    ExpectNear(oracle.losses(), cpu.losses(), 3, 1e-4);
    EXPECT_LT(oracle.losses().back(), oracle.losses().front());
    const absl::StatusOr<SafetensorsContents> model = ReadSafetensors(path);
    ASSERT_TRUE(model.ok()) << model.status();
    const Tensor* variance = model->Find("norm.running_var");
    ASSERT_NE(variance, nullptr);
    EXPECT_EQ(variance->shape(), Shape({4}));
    EXPECT_NE(variance->data<float>()[0], 1);
    EXPECT_NE(model->Find("repeat_1.2.residual_1.batch_norm_1.running_mean"), nullptr);
  }
}

// A momentum of 1 makes the statistics those of the newest batch. The rate moves no weight, and each epoch is
// a step over the same samples. So the mean of the replicas' half-batch means is the mean of the whole batch.
TEST(TrainerTest, StatisticsAreMeansOverReplicas) {
  v1::JobSpec spec = SmallResnet(1);
  spec.mutable_model()->mutable_layers()->DeleteSubrange(2, 2);
  spec.mutable_model()->mutable_layers(1)->mutable_batch_norm()->set_momentum(1);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(8);
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(1e-30);
  spec.mutable_training()->set_shuffle(false);
  std::vector<Tensor> means;
  std::vector<double> validation;
  for (const int replicas : {1, 2}) {
    spec.mutable_replicas()->set_count(replicas);
    TrainingRecorder recorder;
    const std::string path = absl::StrCat(::testing::TempDir(), "/means_", replicas, ".safetensors");
    const absl::Status status = Train(spec, "reference", &recorder, path);
    ASSERT_TRUE(status.ok()) << status;
    means.push_back(*ReadSafetensors(path)->Find("norm.running_mean"));
    for (const v1::EpochSummary& epoch : recorder.epochs) validation.push_back(epoch.validation().loss());
  }
  for (int c = 0; c < 4; ++c) EXPECT_NEAR(means[0].data<float>()[c], means[1].data<float>()[c], 1e-6);
  ASSERT_EQ(validation.size(), 6);
  EXPECT_EQ(validation[3], validation[4]);
  EXPECT_EQ(validation[4], validation[5]);
}

// Validation averages statistics only for itself: training without validation has the same result.
TEST(TrainerTest, ValidationLeavesTheReplicasTheirOwnStatistics) {
  v1::JobSpec spec = SmallResnet(2);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(24);
  std::vector<SafetensorsContents> models;
  for (const int64_t validation_samples : {11, 0}) {
    spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(validation_samples);
    TrainingRecorder recorder;
    const std::string path = absl::StrCat(::testing::TempDir(), "/own_", validation_samples, ".safetensors");
    const absl::Status status = Train(spec, "reference", &recorder, path);
    ASSERT_TRUE(status.ok()) << status;
    absl::StatusOr<SafetensorsContents> model = ReadSafetensors(path);
    ASSERT_TRUE(model.ok()) << model.status();
    models.push_back(*std::move(model));
  }
  for (const char* name : {"norm.running_mean", "norm.running_var", "dense_1.weight"}) {
    const Tensor* with = models[0].Find(name);
    const Tensor* without = models[1].Find(name);
    ASSERT_NE(with, nullptr) << name;
    ASSERT_NE(without, nullptr) << name;
    for (int64_t i = 0; i < with->elements(); ++i) {
      EXPECT_EQ(with->data<float>()[i], without->data<float>()[i]) << name << " " << i;
    }
  }
}

// The dropped elements depend on the seed, the step and a sample's place in the batch.
TEST(TrainerTest, DropoutDoesNotDependOnReplicas) {
  v1::JobSpec spec = SmallLenet(1);
  v1::Model* model = spec.mutable_model();
  model->mutable_layers()->DeleteSubrange(2, 4);
  *model->add_layers() = FromText<v1::Layer>("dropout { rate: 0.3 }");
  *model->add_layers() = FromText<v1::Layer>("dense { units: 16 activation: ACTIVATION_TANH }");
  *model->add_layers() = FromText<v1::Layer>("dropout {}");
  *model->add_layers() = FromText<v1::Layer>("dense { units: 4 }");
  TrainingRecorder one;
  ASSERT_TRUE(Train(spec, "reference", &one).ok());
  for (const int replicas : {2, 3}) {
    SCOPED_TRACE(replicas);
    spec.mutable_replicas()->set_count(replicas);
    TrainingRecorder several, cpu;
    ASSERT_TRUE(Train(spec, "reference", &several).ok());
    ExpectNear(one.losses(), several.losses(), 20, 1e-8);
    EXPECT_NEAR(one.epochs[2].validation().loss(), several.epochs[2].validation().loss(), 1e-8);
    ASSERT_TRUE(Train(spec, "cpu", &cpu).ok());
    ExpectNear(one.losses(), cpu.losses(), 3, 1e-4);
  }
}

TEST(TrainerTest, ReportsSayWhereTrainingIs) {
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(SmallLenet(2), "cpu", &recorder).ok());
  EXPECT_EQ(recorder.started, 1);
  for (size_t i = 0; i < recorder.progress.size(); ++i) {
    const v1::Progress& progress = recorder.progress[i];
    EXPECT_EQ(progress.step(), static_cast<int64_t>(i + 1));
    EXPECT_EQ(progress.steps(), 24);
    EXPECT_EQ(progress.epoch(), static_cast<int64_t>(i / 8 + 1));
    EXPECT_EQ(progress.training().samples(), i % 8 == 7 ? 5 : 8);
    EXPECT_EQ(progress.learning_rate(), 0.05);
    EXPECT_GT(progress.images_per_second(), 0);
  }
  ASSERT_EQ(recorder.epochs.size(), 3);
  const v1::EpochSummary& epoch = recorder.epochs[1];
  EXPECT_EQ(epoch.epoch(), 2);
  EXPECT_EQ(epoch.epochs(), 3);
  EXPECT_EQ(epoch.step(), 16);
  EXPECT_GT(epoch.training_seconds(), 0);
  EXPECT_GT(epoch.validation_seconds(), 0);
  ASSERT_EQ(epoch.replicas_size(), 2);
  EXPECT_EQ(epoch.replicas(0).samples(), 31);
  EXPECT_EQ(epoch.replicas(1).samples(), 30);
  EXPECT_EQ(epoch.replicas(1).device(), "devices/cpu:1");
  EXPECT_GT(epoch.replicas(1).reduce_seconds(), 0);
  // The epoch's mean is the mean of its steps, weighted by their samples.
  double sum = 0;
  for (int i = 8; i < 16; ++i)
    sum += recorder.progress[i].training().loss() * recorder.progress[i].training().samples();
  EXPECT_NEAR(epoch.training().loss(), sum / 61, 1e-12);
}

TEST(TrainerTest, ReportsComeAtTheIntervalAndAtTheEndOfAnEpoch) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->mutable_report()->set_every_steps(3);
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
  std::vector<int64_t> steps;
  for (const v1::Progress& progress : recorder.progress) steps.push_back(progress.step());
  EXPECT_THAT(steps, ::testing::ElementsAre(3, 6, 8, 11, 14, 16, 19, 22, 24));
  EXPECT_EQ(recorder.progress[1].training().samples(), 24);

  // By time: the clock stands still except for a second at the first report.
  spec.mutable_training()->mutable_report()->set_every_steps(4);
  spec.mutable_training()->mutable_report()->set_every_seconds(1);
  FakeClock clock(absl::UnixEpoch());
  TrainingRecorder timed;
  timed.on_progress = [&] {
    if (timed.progress.size() == 1) clock.Advance(absl::Seconds(2));
  };
  spec.mutable_replicas()->set_count(1);
  Trainer::Options options = OptionsFor(spec, "cpu", &timed);
  options.clock = &clock;
  ASSERT_TRUE((*Trainer::Create(options))->Run().ok());
  steps.clear();
  for (const v1::Progress& progress : timed.progress) steps.push_back(progress.step());
  EXPECT_THAT(steps, ::testing::ElementsAre(4, 5, 8, 12, 16, 20, 24));
}

TEST(TrainerTest, EveryOptimizerTrainsOnEveryBackendAndAnyNumberOfReplicas) {
  for (const char* kind :
       {"adam {}", "adam { amsgrad: true weight_decay: 0.01 }", "adamw {}", "nadam {}", "adamax {}",
        "rmsprop { learning_rate: 0.001 centered: true momentum: 0.5 }", "adagrad {}", "adadelta {}",
        "lion { weight_decay: 0.1 }", "lamb { weight_decay: 0.1 }"}) {
    for (const char* clip : {"", "clip { norm: 0.5 }", "clip { value: 0.01 }"}) {
      SCOPED_TRACE(absl::StrCat(kind, " ", clip));
      v1::JobSpec spec = SmallLenet(1);
      *spec.mutable_training()->mutable_optimizer() = FromText<v1::Optimizer>(
          absl::StrCat(kind, clip, " groups { biases_and_norms: true weight_decay: 0 }"));
      TrainingRecorder oracle, shared, cpu;
      ASSERT_TRUE(Train(spec, "reference", &oracle).ok());
      spec.mutable_replicas()->set_count(3);
      ASSERT_TRUE(Train(spec, "reference", &shared).ok());
      spec.mutable_replicas()->set_count(2);
      const absl::Status status = Train(spec, "cpu", &cpu);
      ASSERT_TRUE(status.ok()) << status;
      // If a gradient is rounding alone, adaptive optimizers turn it into whole steps.
      ExpectNear(oracle.losses(), shared.losses(), 4, 1e-6);
      ExpectNear(oracle.losses(), cpu.losses(), 2, 1e-3);
    }
  }
}

TEST(TrainerTest, TheLearningRateFollowsItsSchedule) {
  v1::JobSpec spec = SmallLenet(2);
  *spec.mutable_training()->mutable_schedule() = FromText<v1::Schedule>(R"(
      exponential { gamma: 0.5 } warmup { length: 4 start_factor: 0 unit: SCHEDULE_UNIT_STEPS }
      linear_scaling: true)");
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
  ASSERT_EQ(recorder.progress.size(), 24);
  std::vector<double> rates;
  for (const v1::Progress& progress : recorder.progress) rates.push_back(progress.learning_rate());
  EXPECT_EQ(rates[0], 0);
  EXPECT_EQ(rates[2], 0.05);
  EXPECT_EQ(rates[11], 0.1);
  EXPECT_EQ(rates[12], 0.05);
  EXPECT_EQ(recorder.epochs[1].learning_rate(), 0.05);
  EXPECT_EQ(recorder.epochs[2].learning_rate(), 0.025);
  EXPECT_THAT(recorder.notices, ::testing::ElementsAre(HasSubstr("multiplied by 2")));
  // The first step's rate was 0, so the second step begins from the same weights.
  spec.mutable_training()->clear_schedule();
  TrainingRecorder constant;
  ASSERT_TRUE(Train(spec, "cpu", &constant).ok());
  EXPECT_EQ(recorder.losses()[0], constant.losses()[0]);
  EXPECT_NE(recorder.losses()[1], constant.losses()[1]);
}

TEST(TrainerTest, TheLearningRateDropsOnAPlateau) {
  for (const int replicas : {1, 3}) {
    for (const int64_t validation : {0, 27}) {
      SCOPED_TRACE(absl::StrCat(replicas, " replicas, ", validation, " validation samples"));
      v1::JobSpec spec = SmallLenet(replicas);
      spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(validation);
      spec.mutable_training()->set_epochs(4);
      // No loss is lower than another by 100.
      *spec.mutable_training()->mutable_schedule() = FromText<v1::Schedule>(
          "plateau { patience: 0 factor: 0.5 threshold: 100 threshold_mode: THRESHOLD_MODE_ABS }");
      TrainingRecorder recorder;
      ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
      ASSERT_EQ(recorder.epochs.size(), 4);
      EXPECT_EQ(recorder.epochs[0].learning_rate(), 0.05);
      EXPECT_EQ(recorder.epochs[1].learning_rate(), 0.05);
      EXPECT_EQ(recorder.epochs[2].learning_rate(), 0.025);
      EXPECT_EQ(recorder.epochs[3].learning_rate(), 0.0125);
      EXPECT_EQ(recorder.progress[16].learning_rate(), 0.025);
    }
  }
}

TEST(TrainerTest, AnyPrefetchAndOrderOfEventsIsTheSameTraining) {
  v1::JobSpec spec = SmallLenet(2);
  TrainingRecorder none, deep;
  spec.mutable_replicas()->set_prefetch(0);
  ASSERT_TRUE(Train(spec, "cpu", &none).ok());
  spec.mutable_replicas()->set_prefetch(16);
  ASSERT_TRUE(Train(spec, "cpu", &deep).ok());
  EXPECT_EQ(none.losses(), deep.losses());
}

TEST(TrainerTest, WithoutValidationEpochsHaveNone) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(0);
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
  ASSERT_EQ(recorder.epochs.size(), 3);
  EXPECT_FALSE(recorder.epochs[0].has_validation());
}

TEST(TrainerTest, ALastShortBatchIsDropped) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(35);
  spec.mutable_training()->set_drop_last(true);
  for (const char* kind : {"reference", "cpu"}) {
    SCOPED_TRACE(kind);
    TrainingRecorder recorder;
    const absl::Status status = Train(spec, kind, &recorder);
    ASSERT_TRUE(status.ok()) << status;
    const int64_t batch = spec.training().global_batch_size();
    const int64_t steps = 35 / batch;
    ASSERT_NE(35 % batch, 0);
    EXPECT_EQ(recorder.losses().size(), spec.training().epochs() * steps);
    for (const auto& epoch : recorder.epochs) EXPECT_EQ(epoch.training().samples(), steps * batch);
  }
}

TEST(TrainerTest, AReplicaMayGetNothingOfTheLastBatchAndOfValidation) {
  v1::JobSpec spec = SmallLenet(3);
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(17);
  spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(1);
  for (const char* kind : {"reference", "cpu"}) {
    SCOPED_TRACE(kind);
    TrainingRecorder one, three;
    v1::JobSpec alone = spec;
    alone.mutable_replicas()->set_count(1);
    ASSERT_TRUE(Train(alone, kind, &one).ok());
    const absl::Status status = Train(spec, kind, &three);
    ASSERT_TRUE(status.ok()) << status;
    ExpectNear(one.losses(), three.losses(), 9, std::string(kind) == "cpu" ? 1e-3 : 1e-8);
    EXPECT_EQ(three.epochs[0].replicas(2).samples(), 4);
    EXPECT_EQ(three.epochs[0].validation().samples(), 1);
  }
}

}  // namespace
}  // namespace tandem
