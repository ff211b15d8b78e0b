// Moving averages of weights and of running statistics.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/device_factory.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/plan.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/snapshot.h"
#include "engine/training/step_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using Numbers = std::vector<double>;

v1::JobSpec SmallNorm() {
  v1::JobSpec spec = FromText<v1::JobSpec>(R"(
    model {
      input { shape: [3] }
      layers { dense { units: 2 } }
      layers { batch_norm {} }
      layers { dense { units: 3 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { sgd { learning_rate: 0.5 } }
      weight_average { decay: 0.2 }
      global_batch_size: 8
      epochs: 1
    })");
  FillDefaults(&spec);
  return spec;
}

// Computed by hand, in plain float64 arithmetic from the formulas of batch norm (Ioffe and Szegedy 2015),
// softmax cross-entropy and SGD: 4 steps of rate 0.5 on one batch. After t steps, an average is d average +
// (1 - d) value with d = min(0.2, t / (t + 9)).
//   x[i][j] = ((5 i + 3 j) % 16 - 8) / 8, labels 0 1 2 2 1 0 0 1
const std::map<std::string, Numbers>& Initial() {
  static const auto* const kValues =
      new std::map<std::string, Numbers>({{"dense_1.weight", {-0.625, -0.125, 0.375, 0.25, 0.75, -0.5}},
                                          {"dense_1.bias", {-0.25, 0.25}},
                                          {"batch_norm_1.weight", {1, 1}},
                                          {"batch_norm_1.bias", {0, 0}},
                                          {"batch_norm_1.running_mean", {0, 0}},
                                          {"batch_norm_1.running_var", {1, 1}},
                                          {"dense_2.weight", {-0.75, 0, 0.5, -0.5, 0, 0.75}},
                                          {"dense_2.bias", {0, 0, 0}}});
  return *kValues;
}
const std::map<std::string, Numbers>& Averaged() {
  static const auto* const kValues = new std::map<std::string, Numbers>(
      {{"dense_1.weight",
        {-0.623030955903495, -0.03119002615452, 0.400299778429631, 0.40781519713611, 0.526842915389752,
         -0.683141562384673}},
       {"dense_1.bias", {-0.25, 0.25}},
       {"batch_norm_1.weight", {0.903416922896563, 1.18851656476825}},
       {"batch_norm_1.bias", {-0.100553578085836, -0.0684981307970706}},
       {"batch_norm_1.running_mean", {-0.0715105729027063, 0.0479818814447481}},
       {"batch_norm_1.running_var", {0.768128617494305, 0.767772152992614}},
       {"dense_2.weight",
        {-0.535162928273253, -0.226949129045819, 0.556669530911783, -0.496764570449489, -0.27150660263853,
         0.973713699495309}},
       {"dense_2.bias", {0.139263460934055, -0.0476692923326215, -0.0915941686014338}}});
  return *kValues;
}

TEST(WeightAverageTest, AveragesParametersAndStatistics) {
  const v1::JobSpec spec = SmallNorm();
  const DatasetInfo data = {
      .shape = Shape({3}), .classes = 3, .train_samples = 8, .sample_type = SampleType::kFloats};
  std::vector<float> samples;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 3; ++j) samples.push_back(static_cast<float>(((5 * i + 3 * j) % 16 - 8) / 8.0));
  }
  const std::vector<int32_t> labels = {0, 1, 2, 2, 1, 0, 0, 1};
  for (const std::string kind : {"reference", "cpu"}) {
    SCOPED_TRACE(kind);
    const absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(kind + ":0");
    ASSERT_TRUE(device.ok()) << device.status();
    const std::unique_ptr<Variables> variables = (*device)->CreateVariables(nullptr);
    const absl::StatusOr<StepGraph> step =
        BuildTrainingGraph(spec, data, {.samples = 8, .batch_samples = 8, .dtype = (*device)->dtype()});
    ASSERT_TRUE(step.ok()) << step.status();
    const auto executable = (*device)->Compile(step->graph, variables.get());
    ASSERT_TRUE(executable.ok()) << executable.status();
    for (const auto& [name, values] : Initial()) {
      const Shape shape = step->graph.value(step->graph.FindVariable(name)).shape;
      Tensor value(DType::kFloat64, shape);
      std::copy(values.begin(), values.end(), value.data<double>().begin());
      for (const std::string& variable : {name, AverageName(name)}) {
        ASSERT_TRUE(variables->Write(variable, value).ok()) << variable;
      }
    }
    const double rate = 0.5;
    for (int64_t taken = 0; taken < 4; ++taken) {
      ASSERT_TRUE((*executable)->Run({samples.data(), labels.data(), &rate, &taken}, nullptr).ok());
    }
    const double tolerance = kind == "reference" ? 1e-12 : 2e-6;
    for (const auto& [name, values] : Averaged()) {
      const Tensor average = variables->Read(AverageName(name))->CastTo(DType::kFloat64);
      for (size_t i = 0; i < values.size(); ++i) {
        const double actual = average.data<double>()[i];
        EXPECT_FALSE(!(std::abs(actual - values[i]) <= tolerance))
            << name << " " << i << ": " << actual << " is not " << values[i];
      }
    }
  }
}

// A job with a batch_norm layer.
v1::JobSpec NormJob(int replicas, const std::string& training) {
  v1::JobSpec spec = SmallJob(replicas, training);
  spec.mutable_training()->mutable_optimizer()->mutable_momentum()->set_learning_rate(0.05);
  spec.mutable_training()->clear_schedule();
  return spec;
}

SafetensorsContents ModelOf(const v1::JobSpec& spec, const std::string& kind, Recorder* recorder) {
  FaultyEnv env;
  const Result result = TrainWithFiles(spec, kind, &env, recorder);
  EXPECT_TRUE(result.status.ok()) << result.status;
  return *ParseSafetensors(*env.ReadFile(kModel));
}

// By hand, from the models after each step: d = min(0.15, t / (t + 9)).
TEST(WeightAverageTest, TheModelHasTheAverageOfWeightsAndStatistics) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    std::map<std::string, Numbers> averages;
    Recorder recorder;
    for (int64_t step = 1; step <= 3; ++step) {
      const SafetensorsContents plain =
          ModelOf(NormJob(replicas, absl::StrCat("steps: ", step)), "reference", &recorder);
      const SafetensorsContents averaged =
          ModelOf(NormJob(replicas, absl::StrCat("steps: ", step, " weight_average { decay: 0.15 }")),
                  "reference", &recorder);
      ASSERT_EQ(averaged.tensors.size(), plain.tensors.size());
      const double decay = std::min(0.15, static_cast<double>(step) / static_cast<double>(step + 9));
      for (const auto& [name, tensor] : averaged.tensors) {
        const Tensor value = plain.Find(name)->CastTo(DType::kFloat64);
        const Tensor actual = tensor.CastTo(DType::kFloat64);
        Numbers& average = averages[name];
        // The first expected average comes from the model, because the test does not know the initial values.
        if (step == 1) average.assign(actual.data<double>().begin(), actual.data<double>().end());
        for (size_t i = 0; i < average.size(); ++i) {
          if (step > 1) average[i] = decay * average[i] + (1 - decay) * value.data<double>()[i];
          EXPECT_NEAR(actual.data<double>()[i], average[i], 1e-6) << name << " after step " << step;
        }
      }
    }
    EXPECT_TRUE(averages.count("batch_norm_1.running_var") == 1);
  }
}

// So few steps cannot reach the full decay.
TEST(WeightAverageTest, AnAveragedNetworkIsAsGoodAsItsWeightsInAShortTraining) {
  for (const char* kind : {"reference", "cpu"}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE(absl::StrCat(kind, " ", replicas));
      v1::JobSpec spec = NormJob(replicas, "epochs: 8 best_model {}");
      Recorder plain, averaged;
      ModelOf(spec, kind, &plain);
      spec.mutable_training()->mutable_weight_average()->set_decay(0.999);
      ModelOf(spec, kind, &averaged);
      EXPECT_EQ(averaged.losses, plain.losses);
      const auto accuracy = [](const Recorder& recorder) {
        return recorder.epochs.back().validation().metrics().at("accuracy");
      };
      EXPECT_GE(accuracy(plain), 0.9);
      EXPECT_GE(accuracy(averaged), accuracy(plain) - 0.05);
      EXPECT_LE(averaged.epochs.back().validation().loss(), plain.epochs.back().validation().loss() + 0.05);
    }
  }
}

// Statistics and their averages differ between replicas.
TEST(WeightAverageTest, APausedTrainingEndsBitForBitWhereAWholeOneDoes) {
  for (const bool averages_parameters : {false, true}) {
    v1::JobSpec spec = NormJob(3, "epochs: 2 best_model {} weight_average {}");
    if (averages_parameters) {
      spec.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(3);
    }
    Whole whole(spec, "cpu");
    FaultyEnv env;
    Recorder first, second;
    const Result paused = TrainWithFiles(spec, "cpu", &env, &first, [](Trainer& trainer, int64_t step) {
      if (step == 5) trainer.Pause();
    });
    ASSERT_TRUE(paused.status.ok()) << paused.status;
    const Result resumed = TrainWithFiles(spec, "cpu", &env, &second);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    EXPECT_EQ(*env.ReadFile(kModel), whole.model);
    EXPECT_EQ(resumed.summary.validation().loss(), whole.summary.validation().loss());
  }
}

}  // namespace
}  // namespace tandem
