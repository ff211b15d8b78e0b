// Trainings whose convolutions oneDNN computes. Several steps: a later step finds other values in the memory
// that it reuses.

#include <memory>
#include <string>
#include <vector>

#include "engine/backend/op_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/activation.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/sgd.h"
#include "engine/graph/ops/value_loss.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Adds the loss of `y` against random targets, and a step of SGD for each weight.
void Train(CaseGraph& g, ValueId y, const std::vector<ValueId>& weights, double rate) {
  Graph& graph = g.graph();
  const Shape shape = graph.value(y).shape;
  const Shape rows({shape[0], shape.elements() / shape[0]});
  const ValueId flat = g.AddHidden(std::make_shared<ReshapeOp>(rows), {y})[0];
  const ValueId loss =
      g.Add(std::make_shared<ValueLossOp>(ValueLossSettings()), {flat, g.Input("target", rows)})[0];
  const absl::StatusOr<std::vector<ValueId>> gradients = AppendGradients(graph, loss, weights);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  const ValueId learning_rate = g.Number<double>("learning_rate", rate);
  const ValueId step = g.Number<int64_t>("step", 0);
  for (size_t i = 0; i < weights.size(); ++i) {
    g.AddHidden(std::make_shared<SgdOp>(0, 0, false, 0), {weights[i], (*gradients)[i], learning_rate, step});
  }
}

// Returns the results of the last of `steps` steps.
RunResult Run(Device& device, const CaseGraph& g, int steps) {
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> executable = device.Compile(g.graph(), variables.get());
  EXPECT_TRUE(executable.ok()) << executable.status();
  EXPECT_TRUE(WriteVariables(g, *variables).ok());
  absl::StatusOr<RunResult> result = absl::UnknownError("no step");
  for (int i = 0; i < steps; ++i) result = RunCase(g, **executable, *variables);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

// Compares the weights and the loss after five steps. `build` adds the network for a dtype.
template <typename Build>
void ExpectAgree(DType compute, double tolerance, const Build& build) {
  const std::unique_ptr<Device> oracle = CreateReferenceDevice();
  CpuDevice device("cpu:0", 1, compute);
  constexpr int kSteps = 5;
  const RunResult expected = Run(*oracle, build(oracle->dtype()), kSteps);
  const RunResult actual = Run(device, build(DType::kFloat32), kSteps);
  EXPECT_TRUE(RelativeError(actual.outputs[0], expected.outputs[0]) <= tolerance);
  for (const auto& [name, value] : expected.variables) {
    EXPECT_TRUE(RelativeError(actual.variables.at(name), value) <= tolerance)
        << name << ": " << RelativeError(actual.variables.at(name), value);
  }
}

// 20 channels take two blocks of 16. The rest of the second block must stay 0.
TEST(OneDnnConvolutionTest, SoftplusLeavesThePaddingOfBlocksZero) {
  for (const ActivationRule& rule : {ActivationRule{ActivationFunction::kSoftplus, 2, 20},
                                     ActivationRule{ActivationFunction::kSoftplus, 1, 10}}) {
    SCOPED_TRACE(rule.ToString());
    ExpectAgree(DType::kFloat32, 1e-4, [&](DType dtype) {
      CaseGraph g(dtype);
      const Conv2dGeometry halving = {.stride = {2, 2}, .padding = {1, 1}};
      const ValueId first = g.Variable("first", {20, 3, 3, 3}, -0.15, 0.15);
      const ValueId second = g.Variable("second", {20, 20, 3, 3}, -0.15, 0.15);
      const ValueId x = g.Input("x", {8, 3, 12, 12});
      ValueId y = g.AddHidden(std::make_shared<Conv2dOp>(halving), {x, first})[0];
      y = g.AddHidden(std::make_shared<ActivationOp>(rule), {y})[0];
      y = g.AddHidden(std::make_shared<Conv2dOp>(halving), {y, second})[0];
      Train(g, y, {first, second}, 0.05);
      return g;
    });
  }
}

// A stride wider than the image, as at the end of a deep network over small images.
TEST(OneDnnConvolutionTest, NarrowImagesHaveTheirOwnGradients) {
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "this processor has no bfloat16";
  ExpectAgree(DType::kBFloat16, 0.02, [&](DType dtype) {
    CaseGraph g(dtype);
    const ValueId first = g.Variable("first", {32, 32, 3, 3}, -0.15, 0.15);
    const ValueId second = g.Variable("second", {16, 32, 2, 2}, -0.15, 0.15);
    const ValueId x = g.Input("x", {12, 32, 2, 1});
    ValueId y = g.AddHidden(std::make_shared<Conv2dOp>(Conv2dGeometry{.padding = {1, 1}}), {x, first})[0];
    y = g.AddHidden(std::make_shared<Conv2dOp>(Conv2dGeometry{.stride = {2, 2}, .padding = {1, 1}}),
                    {y, second})[0];
    Train(g, y, {first, second}, 0.05);
    return g;
  });
}

}  // namespace
}  // namespace tandem
