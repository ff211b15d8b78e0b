// Runs random networks on the CPU backend and on the oracle. They must have the same loss, outputs and
// gradients, and the same parameters after an update. --test_env=FIRST_SEED=N and --test_env=SEEDS=M choose
// other networks. If M is 1, the test prints the network's layers and steps.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/backend/op_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/sgd.h"
#include "engine/initializers/initializer.h"
#include "engine/layers/model.h"
#include "engine/losses/loss.h"
#include "gtest/gtest.h"
#include "tests/random/random_network.h"

namespace tandem {
namespace {

// Beside float32's roundings, a maximum or a ReLU near its kink may fall on the other side.
constexpr double kTolerance = 2e-3;
constexpr int64_t kBatches[] = {1, 2, 3, 7, 13, 16, 17, 31, 32, 45};

uint64_t Setting(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  if (text == nullptr) return usual;
  uint64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << name << " is " << text;
  return number;
}

// A number from 0 to below `bound` that belongs to a seed.
int64_t Choose(uint64_t seed, uint64_t salt, int64_t bound) {
  uint64_t x = seed * 0x9E3779B97F4A7C15u + salt * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 31)) * 0x94D049BB133111EBu;
  return static_cast<int64_t>((x >> 17) % static_cast<uint64_t>(bound));
}

void AddVariables(CaseGraph& g, const Network& network, uint64_t seed) {
  for (const Parameter& parameter : network.parameters) {
    v1::Initializer initializer = parameter.initializer;
    // Numbers, not zeros and ones.
    if (initializer.has_zeros() || initializer.has_constant()) {
      initializer.mutable_uniform()->set_low(initializer.has_zeros() ? -0.3 : 0.5);
      initializer.mutable_uniform()->set_high(initializer.has_zeros() ? 0.3 : 1.5);
    }
    g.variables().emplace(parameter.name,
                          Initialize(initializer, parameter.shape, parameter.fans, seed, parameter.name));
  }
  for (const Statistic& statistic : network.statistics) {
    Tensor tensor(DType::kFloat32, statistic.shape);
    for (float& number : tensor.data<float>()) number = static_cast<float>(statistic.initial + 0.25);
    g.variables().emplace(statistic.name, std::move(tensor));
  }
}

v1::Loss LossFor(uint64_t seed, bool classes) {
  v1::Loss loss;
  if (!classes) {
    if (Choose(seed, 5, 2) == 0) {
      loss.mutable_mse();
    } else {
      loss.mutable_smooth_l1();
    }
  } else {
    switch (Choose(seed, 6, 3)) {
      case 0:
        loss.mutable_softmax_cross_entropy();
        break;
      case 1:
        loss.mutable_softmax_cross_entropy()->set_label_smoothing(0.1);
        break;
      default:
        loss.mutable_softmax_cross_entropy()->set_ignore_index(0);
        break;
    }
  }
  FillLossDefaults(&loss);
  return loss;
}

struct Options {
  int64_t batch = 1;
  bool training = true;
  bool updates = false;  // Reduces and updates, rather than showing the gradients.
};

Options OptionsFor(uint64_t seed) {
  return {.batch = kBatches[Choose(seed, 1, std::size(kBatches))],
          .training = Choose(seed, 2, 4) != 0,
          .updates = Choose(seed, 3, 2) != 0};
}

absl::Status AddUpdates(CaseGraph& g, const Network& network, const std::vector<ValueId>& grads,
                        uint64_t seed) {
  const ValueId rate = g.Number<double>("learning_rate", 0.5);
  const ValueId steps = g.Number<int64_t>("steps", 3);
  const auto reduced =
      g.graph().AddNode(std::make_shared<AllReduceOp>(0.75, 0, static_cast<int>(grads.size())), grads);
  if (!reduced.ok()) return reduced.status();
  const double momentum = Choose(seed, 4, 2) == 0 ? 0 : 0.9;
  for (size_t i = 0; i < grads.size(); ++i) {
    const Parameter& parameter = network.parameters[i];
    std::vector<ValueId> inputs = {parameter.value, (*reduced)[i], rate, steps};
    if (momentum != 0) {
      inputs.push_back(g.Variable(absl::StrCat("momentum/", parameter.name), parameter.shape, -0.1, 0.1,
                                  VariableKind::kOptimizerState));
    }
    const absl::Status status =
        g.graph().AddNode(std::make_shared<SgdOp>(momentum, 0, momentum != 0, 0.01), inputs).status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Builds the network of a seed with its loss and gradients. INVALID_ARGUMENT if the network does not take
// such batches.
absl::Status Build(const v1::Model& model, uint64_t seed, const Options& options, CaseGraph& g) {
  const Shape samples = InputShapeOf(model).Batched(options.batch);
  const ValueId input = ReadsTokens(model) ? g.Tokens("samples", samples, kRandomVocabulary)
                                           : g.Input("samples", samples, -2, 2);
  BuildOptions build;
  build.random = {.seed = seed, .step = g.Number<int64_t>("step", 5), .first_sample = 3};
  const absl::StatusOr<Network> network =
      BuildModel(model, input, g.dtype(), options.training, g.graph(), build);
  if (!network.ok()) return network.status();
  AddVariables(g, *network, seed);
  const Shape output = g.graph().value(network->output).shape;
  const bool classes = output.rank() == 2 && output[1] > 1 && Choose(seed, 7, 2) == 0;
  const ValueId target =
      classes ? g.Labels("target", options.batch, output[1]) : g.Input("target", output, -1, 1);
  const absl::StatusOr<LossValues> loss = AddLoss(LossFor(seed, classes), network->output, target, g.graph());
  if (!loss.ok()) return loss.status();
  g.graph().MarkOutput(loss->loss);
  g.graph().MarkOutput(network->output);
  std::vector<ValueId> parameters;
  for (const Parameter& parameter : network->parameters) parameters.push_back(parameter.value);
  const absl::StatusOr<std::vector<ValueId>> grads = AppendGradients(g.graph(), loss->loss, parameters);
  if (!grads.ok()) return grads.status();
  if (options.updates) return AddUpdates(g, *network, *grads, seed);
  for (const ValueId grad : *grads) g.graph().MarkOutput(grad);
  return absl::OkStatus();
}

// Returns the largest magnitude among gradients. The smallest gradients are rounding errors. If the output
// does not depend on any parameter, all gradients are.
double LargestOf(const RunResult& result) {
  double largest = 1e-2;
  for (size_t i = 2; i < result.outputs.size(); ++i) {
    const Tensor numbers = result.outputs[i].CastTo(DType::kFloat64);
    for (const double number : numbers.data<double>()) largest = std::max(largest, std::abs(number));
  }
  return largest;
}

void Compare(const RunResult& actual, const RunResult& expected) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  const double least = 0.05 * LargestOf(expected);
  for (size_t i = 0; i < actual.outputs.size(); ++i) {
    const double error = RelativeError(actual.outputs[i], expected.outputs[i], i < 2 ? 1e-3 : least);
    EXPECT_TRUE(error <= kTolerance) << "output " << i << " is off by " << error;
  }
  for (const auto& [name, value] : actual.variables) {
    const double error = RelativeError(value, expected.variables.at(name), 1e-2);
    EXPECT_TRUE(error <= kTolerance) << name << " is off by " << error;
  }
}

// Returns whether the network took the batch.
bool Try(uint64_t seed, bool shows) {
  const v1::Model model = RandomNetwork(seed);
  const Options options = OptionsFor(seed);
  const int threads = 1 + static_cast<int>(Choose(seed, 8, 3));
  CpuDevice device("cpu:0", threads);
  const std::unique_ptr<Device> reference = CreateReferenceDevice();
  CaseGraph graph(device.dtype());
  const absl::Status built = Build(model, seed, options, graph);
  if (shows) {
    std::cerr << model.DebugString() << "batch " << options.batch << ", threads " << threads << "\n"
              << graph.graph().ToString() << built << "\n";
  }
  if (absl::IsInvalidArgument(built)) return false;
  EXPECT_TRUE(built.ok()) << built;
  CaseGraph reference_graph(reference->dtype());
  EXPECT_TRUE(Build(model, seed, options, reference_graph).ok());
  const absl::StatusOr<RunResult> actual = RunCaseOn(device, graph);
  const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, reference_graph);
  EXPECT_TRUE(actual.ok()) << actual.status();
  EXPECT_TRUE(expected.ok()) << expected.status();
  if (actual.ok() && expected.ok()) Compare(*actual, *expected);
  return true;
}

TEST(RandomNetworkTest, IsComputedAsTheOracleDoes) {
  const uint64_t first = Setting("FIRST_SEED", 1);
  const uint64_t count = Setting("SEEDS", 100);
  uint64_t taken = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(absl::StrCat("FIRST_SEED=", seed, " SEEDS=1"));
    taken += Try(seed, /*shows=*/count == 1) ? 1 : 0;
  }
  // Only a few networks refuse their batch.
  EXPECT_GT(2 * taken, count);
}

}  // namespace
}  // namespace tandem
