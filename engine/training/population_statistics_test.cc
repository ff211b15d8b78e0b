// Compares finished networks with the statistics of all training samples with plain loops.

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/faulty_env.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/augment/augmenter.h"
#include "engine/data/dealing.h"
#include "engine/data/sampler.h"
#include "engine/layers/model_template.h"
#include "engine/training/plan.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/step_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSide = 4;
constexpr int64_t kPixels = kSide * kSide;
constexpr double kEpsilon = 1e-5;

// 7 batches of 8 and a batch of 6 in an epoch. The first batch_norm has the statistics of pixels, the second
// the statistics of hidden units.
v1::JobSpec TwoNorms(int replicas, const std::string& training = "", int64_t samples = 62) {
  v1::JobSpec spec = FromText<v1::JobSpec>(absl::StrCat(R"(
    dataset {
      synthetic { shape: [1, 4, 4] classes: 3 train_samples: )",
                                                        samples, R"( validation_samples: 27 }
      augmentation { horizontal_flip {} }
      augmentation { translation { x: 1 y: 1 } }
    }
    model {
      input { shape: [1, 4, 4] }
      layers { batch_norm { momentum: 0.3 } }
      layers { dense { units: 6 activation: ACTIVATION_RELU } }
      layers { batch_norm {} }
      layers { dense { units: 3 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { momentum { learning_rate: 0.1 } }
      global_batch_size: 8
      batch_norm_statistics: BATCH_NORM_STATISTICS_POPULATION
      seed: 7
      report { every_steps: 1 }
    )",
                                                        training, training.empty() ? "epochs: 2 }" : "}"));
  spec.mutable_replicas()->set_count(replicas);
  return spec;
}

struct Trained {
  Result result;
  Recorder recorder;
  SafetensorsContents model;
  FaultyEnv env;
};

// `kind` is "reference" or "cpu".
void TrainTo(const v1::JobSpec& spec, const std::string& kind, Trained* trained) {
  trained->result = TrainWithFiles(spec, kind, &trained->env, &trained->recorder);
  ASSERT_TRUE(trained->result.status.ok()) << trained->result.status;
  trained->model = *ParseSafetensors(*trained->env.ReadFile(kModel));
}

using Rows = std::vector<std::vector<double>>;

std::vector<double> Numbers(const SafetensorsContents& model, const std::string& name) {
  const absl::Span<const float> values = model.Find(name)->data<float>();
  return {values.begin(), values.end()};
}

// The sums over batches of samples times mean, and of samples times unbiased variance.
struct Sums {
  double samples = 0;
  std::vector<double> means, variances;

  // Adds and normalises a batch of `count` samples. `values[c]` holds the values of channel c.
  void Add(double count, Rows* values) {
    samples += count;
    means.resize(values->size());
    variances.resize(values->size());
    for (size_t c = 0; c < values->size(); ++c) {
      const auto n = static_cast<double>((*values)[c].size());
      double mean = 0, squares = 0;
      for (const double value : (*values)[c]) mean += value / n;
      for (const double value : (*values)[c]) squares += (value - mean) * (value - mean);
      means[c] += count * mean;
      variances[c] += count * squares / (n - 1);
      for (double& value : (*values)[c]) value = (value - mean) / std::sqrt(squares / n + kEpsilon);
    }
  }
};

// Expects the statistics of plain loops over the samples of epoch `epoch`, with the model's weights. `shares`
// deals each batch.
void ExpectPopulation(const v1::JobSpec& spec, const SafetensorsContents& model, int64_t epoch,
                      const std::vector<double>& shares, double tolerance) {
  absl::StatusOr<OpenedDataset> opened = OpenDataset(spec.dataset());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const DatasetInfo& info = opened->info;
  const std::unique_ptr<const Dataset> data =
      Augment(std::move(opened->train), spec.dataset().augmentation(), info, spec.training().seed());
  const std::vector<uint32_t> order = ShuffledOrder(info.train_samples, spec.training().seed(), epoch);
  const std::vector<double> scale = Numbers(model, "batch_norm_1.weight");
  const std::vector<double> shift = Numbers(model, "batch_norm_1.bias");
  const std::vector<double> weight = Numbers(model, "dense_1.weight");  // [units, pixels]
  const std::vector<double> bias = Numbers(model, "dense_1.bias");
  Sums image, hidden;
  const int64_t batch = spec.training().global_batch_size();
  const int64_t samples =
      spec.training().drop_last() ? info.train_samples / batch * batch : info.train_samples;
  int64_t begin = 0;
  while (begin < samples) {
    const int64_t whole = std::min(batch, samples - begin);
    for (const int64_t count : DealSamples(whole, shares)) {
      if (count == 0) continue;
      std::vector<uint8_t> pixels(count * kPixels);
      std::vector<int32_t> classes(count);
      EXPECT_TRUE(data->GatherEpoch(epoch, absl::MakeConstSpan(order).subspan(begin, count), pixels.data(),
                                    classes.data())
                      .ok());
      begin += count;
      Rows x(1);
      for (const uint8_t pixel : pixels) {
        const ResolvedNormalization& normal = info.normalization;
        x[0].push_back((pixel * normal.scale - normal.mean[0]) / normal.standard_deviation[0]);
      }
      image.Add(static_cast<double>(count), &x);
      Rows units(bias.size());
      for (size_t unit = 0; unit < units.size(); ++unit) {
        for (int64_t n = 0; n < count; ++n) {
          double sum = bias[unit];
          for (int64_t i = 0; i < kPixels; ++i) {
            sum += weight[unit * kPixels + i] * (scale[0] * x[0][n * kPixels + i] + shift[0]);
          }
          units[unit].push_back(std::max(0.0, sum));
        }
      }
      hidden.Add(static_cast<double>(count), &units);
    }
  }
  const auto expect = [&](const std::string& name, const std::vector<double>& sums) {
    const std::vector<double> actual = Numbers(model, name);
    ASSERT_EQ(actual.size(), sums.size());
    for (size_t c = 0; c < sums.size(); ++c) {
      const double expected = sums[c] / static_cast<double>(samples);
      EXPECT_FALSE(!(std::abs(actual[c] - expected) <= tolerance * (1 + std::abs(expected))))
          << name << "[" << c << "] is " << actual[c] << ", not " << expected;
    }
  };
  EXPECT_EQ(image.samples, static_cast<double>(samples));
  expect("batch_norm_1.running_mean", image.means);
  expect("batch_norm_1.running_var", image.variances);
  expect("batch_norm_2.running_mean", hidden.means);
  expect("batch_norm_2.running_var", hidden.variances);
}

TEST(PopulationStatisticsTest, AreThoseOfPlainLoops) {
  for (const char* kind : {"reference", "cpu"}) {
    for (const int replicas : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(kind, " ", replicas));
      const v1::JobSpec spec = TwoNorms(replicas);
      Trained trained;
      TrainTo(spec, kind, &trained);
      // The samples are those of the next epoch.
      ExpectPopulation(spec, trained.model, 3, std::vector<double>(replicas, 1.0),
                       std::string(kind) == "cpu" ? 1e-4 : 1e-6);
    }
  }
}

TEST(PopulationStatisticsTest, AreThoseOfTheWeightsThatAreExported) {
  const v1::JobSpec average = TwoNorms(2, "epochs: 2 weight_average { decay: 0.9 }");
  Trained trained;
  TrainTo(average, "reference", &trained);
  ExpectPopulation(average, trained.model, 3, {1, 1}, 1e-6);

  // Training ends between two averagings: the model is the replicas' mean.
  v1::JobSpec alone = TwoNorms(2, "steps: 10 early_stopping { max_seconds: 1e-9 }");
  alone.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(7);
  Trained mean;
  TrainTo(alone, "reference", &mean);
  EXPECT_LT(mean.result.summary.steps(), 7);
  ExpectPopulation(alone, mean.model, 2, {1, 1}, 1e-6);
}

TEST(PopulationStatisticsTest, APartOfABatchIsABatchAsInTraining) {
  v1::JobSpec spec = TwoNorms(1, "epochs: 1 accumulation_steps: 3");
  Trained trained;
  TrainTo(spec, "reference", &trained);
  ExpectPopulation(spec, trained.model, 2, {1, 1, 1}, 1e-6);
}

TEST(PopulationStatisticsTest, LeaveOutTheSamplesThatTheEpochLeavesOut) {
  const v1::JobSpec spec = TwoNorms(2, "epochs: 2 drop_last: true");
  Trained trained;
  TrainTo(spec, "reference", &trained);
  ExpectPopulation(spec, trained.model, 3, {1, 1}, 1e-6);
}

// The weights never change, so only the pass over the samples matters.
v1::JobSpec Unchanged(int replicas, int64_t batch, int64_t samples) {
  v1::JobSpec spec = TwoNorms(replicas, "epochs: 1", samples);
  spec.mutable_training()->mutable_optimizer()->mutable_momentum()->set_learning_rate(1e-30);
  spec.mutable_training()->set_global_batch_size(batch);
  return spec;
}

void ExpectSameModel(const SafetensorsContents& actual, const SafetensorsContents& expected) {
  ASSERT_EQ(actual.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    const std::vector<double> one = Numbers(expected, name), other = Numbers(actual, name);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(other[i], one[i], 1e-6) << name;
  }
}

TEST(PopulationStatisticsTest, TheNumberOfReplicasDoesNotShowOnTheSameBatches) {
  Trained one, two;
  TrainTo(Unchanged(1, 8, 64), "reference", &one);
  TrainTo(Unchanged(2, 16, 64), "reference", &two);
  ExpectSameModel(two.model, one.model);
}

TEST(PopulationStatisticsTest, NorWhereBatchesAreNormalizedWhole) {
  Trained one;
  TrainTo(Unchanged(1, 8, 62), "reference", &one);
  // With 8 replicas, some have no sample of the last batch.
  for (const int replicas : {2, 8}) {
    SCOPED_TRACE(replicas);
    v1::JobSpec spec = Unchanged(replicas, 8, 62);
    for (v1::Layer& layer : *spec.mutable_model()->mutable_layers()) {
      if (layer.has_batch_norm()) layer.mutable_batch_norm()->set_sync(true);
    }
    Trained several;
    TrainTo(spec, "reference", &several);
    ExpectSameModel(several.model, one.model);
  }
}

TEST(PopulationStatisticsTest, TheLastValidationUsesThemAndTrainingDoesNot) {
  v1::JobSpec spec = TwoNorms(2);
  Trained population, running;
  TrainTo(spec, "cpu", &population);
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_RUNNING);
  TrainTo(spec, "cpu", &running);
  EXPECT_EQ(population.recorder.losses, running.recorder.losses);
  ASSERT_THAT(population.recorder.epochs, SizeIs(2));
  const auto loss = [](const Trained& trained, int epoch) {
    return trained.recorder.epochs[epoch].validation().loss();
  };
  EXPECT_EQ(loss(population, 0), loss(running, 0));
  EXPECT_NE(loss(population, 1), loss(running, 1));
  EXPECT_THAT(population.recorder.notices,
              Contains(HasSubstr("62 samples go through the network once more")));
  for (const auto& [name, tensor] : running.model.tensors) {
    const bool is_statistic = absl::StrContains(name, "running");
    EXPECT_EQ(Numbers(population.model, name) == Numbers(running.model, name), !is_statistic) << name;
  }
}

TEST(PopulationStatisticsTest, APausedOrBrokenTrainingEndsBitForBitWhereAWholeOneDoes) {
  for (const int replicas : {1, 3}) {
    v1::JobSpec spec = TwoNorms(replicas, "epochs: 3 best_model {} weight_average { decay: 0.5 }");
    Whole whole(spec, "cpu");
    for (const bool pauses : {true, false}) {
      FaultyEnv env;
      Recorder first, second;
      TrainWithFiles(spec, "cpu", &env, &first, [&](Trainer& trainer, int64_t step) {
        if (step == 20) pauses ? trainer.Pause() : trainer.Cancel();
      });
      EXPECT_FALSE(env.ReadFile(kModel).ok());
      // Validations use the running statistics.
      EXPECT_THAT(first.notices, IsEmpty());
      const Result resumed = TrainWithFiles(spec, "cpu", &env, &second);
      ASSERT_TRUE(resumed.status.ok()) << resumed.status;
      EXPECT_EQ(*env.ReadFile(kModel), whole.model);
      EXPECT_EQ(*env.ReadFile(kBest), *whole.env.ReadFile(kBest));
      EXPECT_EQ(resumed.summary.validation().loss(), whole.summary.validation().loss());
      // An ended training writes its model again, and takes no statistics again.
      Recorder third;
      ASSERT_TRUE(env.RemoveFile(kModel).ok());
      EXPECT_EQ(TrainWithFiles(spec, "cpu", &env, &third).outcome.reason, v1::STATE_REASON_COMPLETED);
      EXPECT_EQ(*env.ReadFile(kModel), whole.model);
      EXPECT_THAT(third.notices, IsEmpty());
    }
  }
}

TEST(PopulationStatisticsTest, ATrainingThatStopsEarlyIsValidatedOnceMore) {
  for (const std::string stopping : {"patience: 1 min_delta: 100", "target: 1000"}) {
    for (const std::string validation : {"", "validation { every_steps: 3 }"}) {
      SCOPED_TRACE(stopping + validation);
      const v1::JobSpec spec =
          TwoNorms(2, absl::StrCat("epochs: 9 best_model {} early_stopping { ", stopping, " } ", validation));
      Trained trained;
      TrainTo(spec, "cpu", &trained);
      const bool target = stopping[0] == 't';
      const int64_t steps = (target ? 1 : 2) * (validation.empty() ? 8 : 3);
      EXPECT_EQ(trained.result.summary.steps(), steps);
      EXPECT_EQ(trained.result.outcome.reason,
                target ? v1::STATE_REASON_TARGET_REACHED : v1::STATE_REASON_NO_IMPROVEMENT);
      ExpectPopulation(spec, trained.model, steps > 8 ? 3 : steps / 9 + 2, {1, 1}, 1e-4);
      // After the validations during training.
      ASSERT_FALSE(trained.recorder.validations.empty());
      const v1::ValidationResult& last = trained.recorder.validations.back();
      EXPECT_EQ(last.step(), steps);
      EXPECT_EQ(last.validation().loss(), trained.result.summary.validation().loss());
      EXPECT_EQ(trained.recorder.validations.size(),
                validation.empty() ? 1 : static_cast<size_t>(steps / 3 + 1));
      const double before = validation.empty() ? trained.recorder.epochs.back().validation().loss()
                                               : trained.recorder.validations.end()[-2].validation().loss();
      EXPECT_NE(last.validation().loss(), before);
      EXPECT_EQ(trained.recorder.checkpoints.back(), steps);
      EXPECT_EQ(trained.result.summary.best().value(), last.best().value());
      // From its checkpoint again: training has ended, whatever the finished network's measure is.
      const std::string model = *trained.env.ReadFile(kModel);
      Recorder again;
      const Result same = TrainWithFiles(spec, "cpu", &trained.env, &again);
      EXPECT_EQ(same.outcome.reason, trained.result.outcome.reason);
      EXPECT_THAT(again.losses, IsEmpty());
      EXPECT_THAT(again.notices, IsEmpty());
      EXPECT_EQ(*trained.env.ReadFile(kModel), model);
    }
  }
}

// The finished network misses the target that ended training. Training has ended nevertheless.
TEST(PopulationStatisticsTest, ATargetThatWasReachedStaysReached) {
  v1::JobSpec spec = TwoNorms(1, "epochs: 5 early_stopping { target: 1000 }");
  Trained first;
  TrainTo(spec, "cpu", &first);
  ASSERT_THAT(first.recorder.epochs, SizeIs(1));
  const double ended = first.recorder.epochs[0].validation().loss();
  const double finished = first.result.summary.validation().loss();
  ASSERT_NE(ended, finished);
  // A measure by which the finished network is worse.
  v1::EarlyStopping& stopping = *spec.mutable_training()->mutable_early_stopping();
  stopping.set_mode(ended < finished ? v1::PLATEAU_MODE_MIN : v1::PLATEAU_MODE_MAX);
  stopping.set_target((ended + finished) / 2);
  Trained second;
  TrainTo(spec, "cpu", &second);
  EXPECT_EQ(second.result.outcome.reason, v1::STATE_REASON_TARGET_REACHED);
  EXPECT_EQ(second.result.summary.steps(), 8);
  Recorder again;
  const Result same = TrainWithFiles(spec, "cpu", &second.env, &again);
  EXPECT_EQ(same.outcome.reason, v1::STATE_REASON_TARGET_REACHED);
  EXPECT_THAT(again.losses, IsEmpty());
}

// For example a fork that asks for population statistics.
TEST(PopulationStatisticsTest, WhatEndedWithoutThemGetsThem) {
  v1::JobSpec spec = TwoNorms(2);
  Whole whole(spec, "cpu");
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_RUNNING);
  Trained running;
  TrainTo(spec, "cpu", &running);
  spec.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_POPULATION);
  Recorder recorder;
  const Result result = TrainWithFiles(spec, "cpu", &running.env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(recorder.losses, IsEmpty());
  EXPECT_THAT(recorder.validations, SizeIs(1));
  EXPECT_EQ(result.summary.validation().loss(), whole.summary.validation().loss());
  const SafetensorsContents model = *ParseSafetensors(*running.env.ReadFile(kModel));
  const SafetensorsContents expected = *ParseSafetensors(whole.model);
  for (const auto& [name, tensor] : expected.tensors) {
    EXPECT_EQ(Numbers(model, name), Numbers(expected, name)) << name;
  }
}

TEST(PopulationStatisticsTest, EveryNormOfANetworkIsAlone) {
  v1::JobSpec spec = SmallLenet(1);
  spec.mutable_model()->Clear();
  spec.mutable_model()->mutable_template_()->mutable_resnet18()->set_width(2);
  ASSERT_TRUE(ExpandTemplate({.sample = Shape({1, 12, 12}), .outputs = 4}, spec.mutable_model()).ok());
  FillDefaults(&spec);
  const DatasetInfo data = {.shape = Shape({1, 12, 12}), .classes = 4, .train_samples = 8};
  const absl::StatusOr<StepGraph> step = BuildStatisticsGraph(spec, data, {.samples = 8, .batch_samples = 8});
  ASSERT_TRUE(step.ok()) << step.status();
  int norms = 0;
  for (const Node& node : step->graph.nodes()) {
    EXPECT_FALSE(absl::StrContains(node.op->kind(), "grad")) << node.op->kind();
    if (node.op->kind() != "batch_norm") continue;
    ++norms;
    EXPECT_THAT(node.op->attributes(), HasSubstr("momentum=1 "));
  }
  EXPECT_EQ(norms, 20);
  EXPECT_THAT(step->statistics, SizeIs(40));
  // A replica without samples, with its own batches, has nothing to do.
  const absl::StatusOr<StepGraph> idle =
      BuildStatisticsGraph(spec, data, {.samples = 0, .batch_samples = 8, .replicas = 9});
  ASSERT_TRUE(idle.ok()) << idle.status();
  EXPECT_THAT(idle->graph.nodes(), IsEmpty());
}

std::vector<std::string> Fields(const v1::JobSpec& spec) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(CheckJob(spec)))
    fields.push_back(violation.field);
  return fields;
}

TEST(PopulationStatisticsTest, WhatTheyCannotGoWithIsRefused) {
  constexpr char kField[] = "training.batch_norm_statistics";
  EXPECT_THAT(Fields(TwoNorms(2)), IsEmpty());
  v1::JobSpec none = SmallLenet(1);
  none.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_POPULATION);
  EXPECT_THAT(Fields(none), ElementsAre(kField));
  EXPECT_THAT(std::string(CheckJob(none).message()), HasSubstr("the model has no batch_norm layer"));
  none.mutable_training()->set_batch_norm_statistics(v1::BATCH_NORM_STATISTICS_RUNNING);
  EXPECT_THAT(Fields(none), IsEmpty());
  v1::JobSpec frozen = TwoNorms(1);
  frozen.add_frozen_layers("batch_norm_*");
  EXPECT_THAT(Fields(frozen), ElementsAre(kField));
  frozen.set_frozen_layers(0, "batch_norm_1");
  EXPECT_THAT(Fields(frozen), IsEmpty());
  EXPECT_THAT(Fields(TwoNorms(1, "epochs: 1 best_model { export_best: true }")),
              ElementsAre("training.best_model.export_best"));
  v1::JobSpec unknown = TwoNorms(1);
  unknown.mutable_training()->set_batch_norm_statistics(static_cast<v1::BatchNormStatistics>(7));
  EXPECT_THAT(Fields(unknown), ElementsAre(kField));
}

// A frozen layer keeps its statistics.
TEST(PopulationStatisticsTest, FrozenLayersStay) {
  v1::JobSpec spec = TwoNorms(2);
  spec.add_frozen_layers("batch_norm_1");
  Trained trained;
  TrainTo(spec, "cpu", &trained);
  EXPECT_THAT(Numbers(trained.model, "batch_norm_1.running_mean"), ElementsAre(0));
  EXPECT_THAT(Numbers(trained.model, "batch_norm_1.running_var"), ElementsAre(1));
  EXPECT_THAT(Numbers(trained.model, "batch_norm_2.running_var"), ::testing::Each(::testing::Ne(1)));
}

TEST(PopulationStatisticsTest, TheirMemoryIsPlanned) {
  const DatasetInfo data = {
      .shape = Shape({1, 4, 4}), .classes = 3, .train_samples = 62, .validation_samples = 27};
  v1::JobSpec spec = TwoNorms(1);
  const absl::StatusOr<JobPlan> with = PlanJob(spec, data);
  ASSERT_TRUE(with.ok()) << with.status();
  spec.mutable_training()->clear_batch_norm_statistics();
  const absl::StatusOr<JobPlan> without = PlanJob(spec, data);
  EXPECT_GT(with->memory.activations, without->memory.activations);
  EXPECT_EQ(with->memory.parameters, without->memory.parameters);
  EXPECT_EQ(with->ops, without->ops);
}

}  // namespace
}  // namespace tandem
