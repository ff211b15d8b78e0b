#include "engine/backend/residual_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Builds a network with two blocks: the shortcut of the first has a convolution.
class Builder {
 public:
  Builder(CaseGraph& graph, const ResidualSettings& settings) : g_(graph), s_(settings) {}

  // With `decisions_alone` the outputs are the inputs of the ReLUs.
  void Build(bool decisions_alone) {
    ValueId x = g_.Input(absl::StrCat("x", s_.draw), {s_.batch, s_.channels, 6, 5});
    x = Relu(Norm(Conv(x, s_.channels, 3, 1)));
    x = Block(x, 2 * s_.channels, 2);
    x = Block(x, 2 * s_.channels, 1);
    if (decisions_alone) {
      for (const ValueId decided : decided_) g_.graph().MarkOutput(decided);
      return;
    }
    const Shape& shape = g_.graph().value(x).shape;
    x = g_.AddHidden(std::make_shared<AveragePool2dOp>(PoolGeometry{{shape[2], shape[3]}, {1, 1}}, true),
                     {x})[0];
    x = g_.AddHidden(std::make_shared<ReshapeOp>(Shape({s_.batch, 2 * s_.channels})), {x})[0];
    x = g_.Add(std::make_shared<LinearOp>(), {x, Parameter("dense", {5, 2 * s_.channels})})[0];
    const ValueId loss =
        g_.Add(std::make_shared<SoftmaxCrossEntropyOp>(), {x, g_.Labels("label", s_.batch, 5)})[0];
    const absl::StatusOr<std::vector<ValueId>> grads = AppendGradients(g_.graph(), loss, parameters_);
    ASSERT_TRUE(grads.ok()) << grads.status();
    for (const ValueId grad : *grads) g_.graph().MarkOutput(grad);
  }

 private:
  std::string Name(absl::string_view kind) { return absl::StrCat(kind, ++count_); }
  ValueId Parameter(absl::string_view kind, Shape shape, double low = -0.3, double high = 0.3) {
    parameters_.push_back(g_.Variable(Name(kind), std::move(shape), low, high));
    return parameters_.back();
  }
  ValueId Conv(ValueId x, int64_t filters, int64_t kernel, int64_t stride) {
    const int64_t channels = g_.graph().value(x).shape[1];
    const Conv2dGeometry geometry = {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}};
    return g_.AddHidden(
        std::make_shared<Conv2dOp>(geometry),
        {x, Parameter("weight", {filters, channels, kernel, kernel}), Parameter("bias", {filters})})[0];
  }
  ValueId Norm(ValueId x) {
    const int64_t channels = g_.graph().value(x).shape[1];
    std::vector<ValueId> inputs = {x, Parameter("gamma", {channels}, 0.5, 1.5), Parameter("beta", {channels}),
                                   g_.Variable(Name("mean"), {channels}, -1, 1, VariableKind::kStatistic),
                                   g_.Variable(Name("var"), {channels}, 0.5, 2, VariableKind::kStatistic)};
    if (s_.training) return g_.AddHidden(std::make_shared<BatchNormOp>(0.1, 1e-5), std::move(inputs))[0];
    return g_.AddHidden(std::make_shared<BatchNormInferenceOp>(1e-5), std::move(inputs))[0];
  }
  ValueId Relu(ValueId x) {
    decided_.push_back(x);
    return g_.AddHidden(std::make_shared<ReluOp>(), {x})[0];
  }
  ValueId Block(ValueId x, int64_t filters, int64_t stride) {
    ValueId y = Norm(Conv(x, filters, 3, stride));
    if (s_.relu_between) y = Relu(y);
    y = Norm(Conv(y, filters, 3, 1));
    ValueId shortcut = x;
    if (stride > 1) {
      shortcut = Conv(x, filters, 1, stride);
      if (s_.shortcut_has_norm) shortcut = Norm(shortcut);
    }
    return Relu(g_.AddHidden(std::make_shared<AddOp>(), {y, shortcut})[0]);
  }

  CaseGraph& g_;
  const ResidualSettings s_;
  int count_ = 0;
  std::vector<ValueId> parameters_;
  std::vector<ValueId> decided_;
};

const std::vector<ResidualSettings>& AllSettings() {
  static const auto& all = *new std::vector<ResidualSettings>{
      {},
      {.batch = 21, .channels = 6},
      {.batch = 16, .channels = 24},
      {.training = false},
      {.batch = 21, .channels = 24, .training = false},
      {.relu_between = false},
      {.batch = 16, .shortcut_has_norm = true},
      {.batch = 48, .channels = 32},
      {.channels = 24, .training = false, .shortcut_has_norm = true},
  };
  return all;
}

double LengthOf(const Tensor& tensor) {
  const Tensor numbers = tensor.CastTo(DType::kFloat64);
  double sum = 0;
  for (const double number : numbers.data<double>()) sum += number * number;
  return std::sqrt(sum);
}

// Returns the distance between two tensors, relative to the length of the second tensor.
double Distance(const Tensor& actual, const Tensor& expected) {
  Tensor difference = actual.CastTo(DType::kFloat64);
  const Tensor wanted = expected.CastTo(DType::kFloat64);
  for (int64_t i = 0; i < wanted.elements(); ++i) difference.data<double>()[i] -= wanted.data<double>()[i];
  return LengthOf(difference) / LengthOf(expected);
}

// Returns the smallest magnitude of a ReLU's input in the oracle. Its sign decides the ReLU's result.
double NearestDecision(Device& reference, const ResidualSettings& settings) {
  CaseGraph graph(reference.dtype());
  Builder(graph, settings).Build(/*decisions_alone=*/true);
  const absl::StatusOr<RunResult> result = RunCaseOn(reference, graph);
  EXPECT_TRUE(result.ok()) << result.status();
  double nearest = std::numeric_limits<double>::infinity();
  if (!result.ok()) return nearest;
  for (const Tensor& decided : result->outputs) {
    const Tensor numbers = decided.CastTo(DType::kFloat64);
    for (const double value : numbers.data<double>()) nearest = std::min(nearest, std::abs(value));
  }
  return nearest;
}

// Draws samples so that rounding in float32 changes no ReLU's decision. Rounding differs between machines and
// compilers, and a changed decision moves gradients far more than rounding.
ResidualSettings WithClearDecisions(Device& reference, ResidualSettings settings) {
  constexpr double kClear = 1e-5;
  constexpr int kMostDraws = 50;
  while (settings.draw < kMostDraws && !(NearestDecision(reference, settings) > kClear)) ++settings.draw;
  EXPECT_LT(settings.draw, kMostDraws);
  return settings;
}

void ExpectAgreement(const RunResult& expected, const ResidualSettings& settings, const ResidualDevice& on) {
  SCOPED_TRACE(absl::StrCat(on.device->name(), on.narrow ? " bfloat16" : "", " batch ", settings.batch,
                            " channels ", settings.channels, " training ", settings.training));
  const absl::StatusOr<RunResult> actual =
      RunCaseOn(*on.device, ResidualNetwork(settings, on.device->dtype()));
  ASSERT_TRUE(actual.ok()) << actual.status();
  // In bfloat16 some ReLUs decide differently, so this check only detects wrong gradients.
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    const Tensor& a = actual->outputs[i];
    const Tensor& b = expected.outputs[i];
    // The gradient of a bias before a batch normalisation is 0 except for rounding.
    if (on.narrow && LengthOf(b) < 1e-9) continue;
    const double error = on.narrow ? Distance(a, b) : RelativeError(a, b, 0.01);
    EXPECT_TRUE(error <= (on.narrow ? 0.5 : 1e-4)) << "output " << i << b.shape().ToString() << ": " << error;
  }
  for (const auto& [name, value] : expected.variables) {
    const double error = RelativeError(actual->variables.at(name), value);
    EXPECT_TRUE(error <= (on.narrow ? 2e-2 : 1e-4)) << name << ": " << error;
  }
}

}  // namespace

CaseGraph ResidualNetwork(const ResidualSettings& settings, DType dtype) {
  CaseGraph graph(dtype);
  Builder(graph, settings).Build(/*decisions_alone=*/false);
  return graph;
}

void ExpectResidualNetworksAgree(Device& reference, absl::Span<const ResidualDevice> devices) {
  for (const ResidualSettings& any : AllSettings()) {
    const ResidualSettings settings = WithClearDecisions(reference, any);
    const absl::StatusOr<RunResult> expected =
        RunCaseOn(reference, ResidualNetwork(settings, reference.dtype()));
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const ResidualDevice& device : devices) ExpectAgreement(*expected, settings, device);
  }
}

}  // namespace tandem
