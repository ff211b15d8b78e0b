// A step of gradient descent on a weighted loss. PyTorch computed the expected gradients on the whole batch
// at once:
//
//   x[i][j] = ((5 i + 3 j) % 16 - 8) / 8; weight[c][j] = ((7 c + 4 j) % 11 - 5) / 8; bias[c] = (c - 1) / 4
//   torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, weight, bias), labels, ...).backward()
//
// The batch has 8 samples of 3 features and 3 classes.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/device_factory.h"
#include "engine/base/status_macros.h"
#include "engine/base/testing/from_text.h"
#include "engine/collectives/local/local_group.h"
#include "engine/training/plan.h"
#include "engine/training/step_graph.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr int kFeatures = 3;
constexpr int kClasses = 3;
constexpr double kRate = 0.5;

struct WeightedCase {
  std::string loss;
  std::vector<int32_t> labels;
  std::vector<double> gradient;  // Of the weights, then of the biases.
};

const WeightedCase& Ignored() {
  static const auto* const kCase =
      new WeightedCase{"softmax_cross_entropy { ignore_index: 2 }",
                       {2, 2, 2, 0, 0, 1, 0, 1},
                       {-0.256609446974039, 0.323573666559285, 0.198575011182373, 0.232395829265454,
                        -0.23117687449339, -0.231689202631849, 0.0242136177085853, -0.0923967920658952,
                        0.033114191449476, -0.333329747671766, -0.00136620836922387, 0.33469595604099}};
  return *kCase;
}

const WeightedCase& Weighted() {
  static const auto* const kCase =
      new WeightedCase{"softmax_cross_entropy { class_weights: [1, 2, 5] }",
                       {0, 0, 0, 0, 1, 1, 2, 2},
                       {-0.0561961448178218, -0.00768820117222476, 0.107204025237901, 0.111931192854664,
                        -0.216413296462939, -0.182651625876469, -0.0557350480368423, 0.224101497635163,
                        0.0754476006385676, 0.0424659340950671, 0.152450910620978, -0.194916844716046}};
  return *kCase;
}

// A replica with class 0 alone has a weight of 0, yet its smoothed targets have a loss.
const WeightedCase& Smoothed() {
  static const auto* const kCase = new WeightedCase{
      "softmax_cross_entropy { class_weights: [0, 2, 5] ignore_index: 2 label_smoothing: 0.125 }",
      {2, 2, 2, 0, 0, 1, 0, 1},
      {-0.0867147951832555, 0.0363294802366498, 0.193942902408031, 0.193022591463177, -0.113799659154807,
       -0.335131147827859, -0.106307796279922, 0.0774701789181568, 0.141188245419827, 0.420302459123685,
       -0.590217303128139, 0.169914844004455}};
  return *kCase;
}

v1::JobSpec JobOf(const std::string& loss, int64_t parts) {
  return FromText<v1::JobSpec>(
      absl::StrCat("model { input { shape: [3] } layers { dense { units: 3 } } } training { loss { ", loss,
                   " } optimizer { sgd { learning_rate: 0.5 } } global_batch_size: 8 epochs: 1 "
                   "accumulation_steps: ",
                   parts, " }"));
}

std::vector<double> Initial() {
  std::vector<double> numbers;
  for (int c = 0; c < kClasses; ++c) {
    for (int j = 0; j < kFeatures; ++j) numbers.push_back(((7 * c + 4 * j) % 11 - 5) / 8.0);
  }
  for (int c = 0; c < kClasses; ++c) numbers.push_back((c - 1) / 4.0);
  return numbers;
}

std::vector<float> Samples() {
  std::vector<float> numbers;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < kFeatures; ++j) {
      numbers.push_back(static_cast<float>(((5 * i + 3 * j) % 16 - 8) / 8.0));
    }
  }
  return numbers;
}

// Runs a replica's step in parts. Returns the change of the parameters divided by the learning rate.
absl::StatusOr<std::vector<double>> Step(const WeightedCase& weighted, v1::JobSpec spec,
                                         const StepShape& whole, const std::string& device_name,
                                         Communicator* communicator) {
  FillDefaults(&spec);
  const DatasetInfo data = {.shape = Shape({kFeatures}),
                            .classes = kClasses,
                            .train_samples = 8,
                            .sample_type = SampleType::kFloats};
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(device_name));
  const std::unique_ptr<Variables> variables = device->CreateVariables(nullptr);
  const std::vector<float> samples = Samples();
  const std::vector<double> initial = Initial();
  std::vector<std::unique_ptr<Executable>> executables;
  const std::vector<StepShape> parts = PartsOf(whole, spec.training().accumulation_steps());
  for (StepShape part : parts) {
    part.dtype = device->dtype();
    TANDEM_ASSIGN_OR_RETURN(const StepGraph step, BuildTrainingGraph(spec, data, part));
    TANDEM_ASSIGN_OR_RETURN(executables.emplace_back(), device->Compile(step.graph, variables.get()));
  }
  const std::vector<double> weights(initial.begin(), initial.begin() + kClasses * kFeatures);
  const std::vector<double> biases(initial.begin() + kClasses * kFeatures, initial.end());
  TANDEM_RETURN_IF_ERROR(
      variables->Write("dense_1.weight", Tensor::Of<double>({kClasses, kFeatures}, weights)));
  TANDEM_RETURN_IF_ERROR(variables->Write("dense_1.bias", Tensor::Of<double>({kClasses}, biases)));
  if (spec.training().has_loss_scaling()) {
    const double scale = spec.training().loss_scaling().initial_scale();
    TANDEM_RETURN_IF_ERROR(variables->Write(kLossScale, Tensor::Of<double>({}, {scale})));
  }
  int64_t first = whole.first_sample;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double rate = kRate;
    const int64_t step = 0;
    std::vector<const void*> inputs;
    if (parts[i].samples > 0) inputs = {samples.data() + first * kFeatures, weighted.labels.data() + first};
    inputs.insert(inputs.end(), {&rate, &step});
    TANDEM_RETURN_IF_ERROR(executables[i]->Run(inputs, communicator));
    first += parts[i].samples;
  }
  std::vector<double> gradient;
  for (const char* name : {"dense_1.weight", "dense_1.bias"}) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, variables->Read(name));
    const Tensor wide = value.CastTo(DType::kFloat64);
    for (const double number : wide.data<double>()) {
      gradient.push_back((initial[gradient.size()] - number) / kRate);
    }
  }
  return gradient;
}

void ExpectGradient(const WeightedCase& weighted, const v1::JobSpec& spec, const std::vector<int64_t>& shares,
                    const std::string& kind) {
  SCOPED_TRACE(absl::StrCat(kind, ", ", shares.size(), " replicas, parts ",
                            spec.training().accumulation_steps(), ", ", weighted.loss));
  const int replicas = static_cast<int>(shares.size());
  const auto communicators = CreateLocalGroup(replicas);
  std::vector<absl::StatusOr<std::vector<double>>> gradients(replicas, std::vector<double>());
  std::vector<std::thread> threads;
  int64_t first = 0;
  for (int rank = 0; rank < replicas; ++rank) {
    const StepShape whole = {.samples = shares[rank],
                             .first_sample = first,
                             .batch_samples = 8,
                             .replicas = replicas,
                             .rank = rank};
    first += shares[rank];
    threads.emplace_back([&, rank, whole] {
      gradients[rank] = Step(weighted, spec, whole, kind + ":0", communicators[rank].get());
      if (!gradients[rank].ok()) communicators[rank]->Abort(gradients[rank].status());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double tolerance = kind == "reference" ? 1e-12 : 2e-6;
  for (const auto& gradient : gradients) {
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    ASSERT_EQ(gradient->size(), weighted.gradient.size());
    for (size_t i = 0; i < gradient->size(); ++i) {
      EXPECT_FALSE(!(std::abs((*gradient)[i] - weighted.gradient[i]) <= tolerance))
          << i << ": " << (*gradient)[i] << " is not " << weighted.gradient[i];
    }
  }
}

TEST(WeightedLossTest, ReplicasAndPartsTakePyTorchsGradientOfTheWholeBatch) {
  for (const WeightedCase* weighted : {&Ignored(), &Weighted(), &Smoothed()}) {
    for (const int64_t parts : {1, 2, 4}) {
      v1::JobSpec spec = JobOf(weighted->loss, parts);
      for (const std::vector<int64_t>& shares :
           {std::vector<int64_t>{8}, {4, 4}, {2, 2, 2, 2}, {3, 0, 5}, {1, 7}}) {
        for (const char* kind : {"reference", "cpu"}) ExpectGradient(*weighted, spec, shares, kind);
      }
    }
  }
}

// The scale is a power of two, which changes no bit.
TEST(WeightedLossTest, AScaledLossHasTheSameGradient) {
  for (const int64_t parts : {1, 2}) {
    v1::JobSpec spec = JobOf(Weighted().loss, parts);
    spec.mutable_training()->set_precision(v1::PRECISION_FLOAT16);
    spec.mutable_training()->mutable_loss_scaling()->set_initial_scale(1024);
    ExpectGradient(Weighted(), spec, {4, 4}, "reference");
  }
}

}  // namespace
}  // namespace tandem
