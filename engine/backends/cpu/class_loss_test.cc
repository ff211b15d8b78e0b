#include <cmath>
#include <memory>

#include "engine/backend/op_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/ops/class_loss.h"
#include "engine/graph/ops/concat.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// A sum of a million exponentials, each far smaller than the sum and rounded the same way.
TEST(CpuClassLossTest, AMillionClassesLoseNoProbability) {
  const auto build = [](DType dtype) {
    CaseGraph g(dtype);
    const ValueId one = g.Input("one", {1, 1}, 0, 1e-7);
    const ValueId others = g.Input("others", {1, 1'000'000}, -1, -1 + 1e-7);
    const ValueId scores = g.AddHidden(std::make_shared<ConcatOp>(1), {one, others})[0];
    const ValueId target = g.Labels("target", 1, 1'000'001);
    const ClassLossSettings settings = {.label_smoothing = 0.1};
    g.Add(std::make_shared<ClassLossOp>(settings), {scores, target});
    g.Add(std::make_shared<ClassLossGradOp>(settings), {scores, target, g.Input("grad_loss", {})});
    return g;
  };
  const std::unique_ptr<Device> oracle = CreateReferenceDevice();
  CpuDevice device("cpu:0", 1);
  const absl::StatusOr<RunResult> expected = RunCaseOn(*oracle, build(oracle->dtype()));
  const absl::StatusOr<RunResult> actual = RunCaseOn(device, build(DType::kFloat32));
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  EXPECT_TRUE(RelativeError(actual->outputs[0], expected->outputs[0]) <= 1e-6);
  // The first class's gradient. The target's would hide it.
  const double first = expected->outputs[3].data<double>()[0];
  EXPECT_TRUE(std::abs(actual->outputs[3].data<float>()[0] / first - 1) <= 1e-5);
}

}  // namespace
}  // namespace tandem
