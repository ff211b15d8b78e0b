#include "engine/backends/reference/gradient_check.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "engine/backends/reference/reference_device.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/reshape.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-7;

// Returns a scalar with a different dependence on each element of `y`.
ValueId Project(CaseGraph& g, ValueId y) {
  const int64_t elements = g.graph().value(y).shape.elements();
  Tensor weights(DType::kFloat64, {1, elements});
  for (int64_t i = 0; i < elements; ++i) weights.data<double>()[i] = std::sin(1.0 + 0.7 * i);
  const ValueId weight =
      g.graph().AddVariable("projection", VariableKind::kStatistic, DType::kFloat64, weights.shape());
  g.variables().emplace("projection", std::move(weights));
  const ValueId row = g.AddHidden(std::make_shared<ReshapeOp>(Shape({1, elements})), {y})[0];
  const ValueId sum = g.AddHidden(std::make_shared<LinearOp>(), {row, weight})[0];
  return g.AddHidden(std::make_shared<ReshapeOp>(Shape()), {sum})[0];
}

double Loss(const CaseGraph& graph, Executable& executable) {
  std::vector<const void*> inputs;
  for (const Tensor& input : graph.inputs()) inputs.push_back(input.raw_data());
  EXPECT_TRUE(executable.Run(inputs, nullptr).ok());
  return executable.Output(0)->data<double>()[0];
}

}  // namespace

void ExpectGradientIsWhatDifferencesSay(const GradientCase& gradient_case) {
  const std::unique_ptr<Device> device = CreateReferenceDevice();
  CaseGraph forward(DType::kFloat64);
  const ValueId loss = Project(forward, gradient_case.build(forward));
  forward.graph().MarkOutput(loss);
  std::vector<ValueId> targets;
  for (const ValueId input : forward.graph().inputs()) {
    if (IsFloatingPoint(forward.graph().value(input).dtype)) targets.push_back(input);
  }
  CaseGraph backward = forward;
  const auto grads = AppendGradients(backward.graph(), loss, targets);
  ASSERT_TRUE(grads.ok()) << grads.status();
  for (const ValueId grad : *grads) backward.graph().MarkOutput(grad);
  const absl::StatusOr<RunResult> result = RunCaseOn(*device, backward);
  ASSERT_TRUE(result.ok()) << result.status();

  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto executable = device->Compile(forward.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_TRUE(WriteVariables(forward, *variables).ok());
  size_t target = 0;
  for (Tensor& input : forward.inputs()) {
    if (!IsFloatingPoint(input.dtype())) continue;
    Tensor differences(DType::kFloat64, input.shape());
    for (int64_t i = 0; i < input.elements(); ++i) {
      double& number = input.data<double>()[i];
      const double middle = number;
      number = middle + kStep;
      const double above = Loss(forward, **executable);
      number = middle - kStep;
      const double below = Loss(forward, **executable);
      number = middle;
      differences.data<double>()[i] = (above - below) / (2 * kStep);
    }
    const double error = RelativeError(result->outputs[1 + target], differences, 0.01);
    EXPECT_TRUE(error <= kTolerance) << "the gradient of input " << target << " is off by " << error;
    ++target;
  }
}

}  // namespace tandem
