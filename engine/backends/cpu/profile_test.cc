#include <memory>

#include "absl/strings/match.h"
#include "engine/backend/op_cases.h"
#include "engine/backend/training_case.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/graph/ops/linear.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// A dense layer [4, 8] x [16, 8]. A step before it copies x, because oneDNN keeps addresses.
TEST(ProfileTest, AStepHasItsOpsFlopsAndTheBytesOfItsValues) {
  CpuDevice device("cpu:0", 1);
  CaseGraph graph(DType::kFloat32);
  const ValueId x = graph.Input("x", {4, 8});
  const ValueId weight = graph.Variable("weight", {16, 8});
  graph.Add(std::make_shared<LinearOp>(), {x, weight});
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const auto executable = device.Compile(graph.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  auto& cpu = static_cast<cpu::CpuExecutable&>(**executable);
  cpu.StartProfile();
  ASSERT_TRUE(RunCase(graph, cpu, *variables, nullptr).ok());
  double flops = 0;
  for (const StepTime& step : cpu.profile()) {
    flops += step.flops;
    EXPECT_EQ(step.runs, 1);
    EXPECT_TRUE(step.best_seconds > 0 && step.best_seconds == step.total_seconds);
    if (step.flops > 0) {
      EXPECT_THAT(step.name, HasSubstr("linear"));
      EXPECT_EQ(step.bytes, 4 * (4 * 8 + 16 * 8 + 4 * 16));
    }
  }
  EXPECT_EQ(flops, 2.0 * 4 * 8 * 16);
}

TEST(ProfileTest, EachConvolutionAndDenseLayerHasItsFlops) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    if (dtype == DType::kBFloat16 && !CpuDevice::OffersBFloat16()) continue;
    CpuDevice device("cpu:0", 1, dtype);
    const CaseGraph graph = TrainingCase(DType::kFloat32, 16);
    const std::unique_ptr<Variables> variables = device.CreateVariables();
    const auto executable = device.Compile(graph.graph(), variables.get());
    ASSERT_TRUE(executable.ok()) << executable.status();
    double expected = 0;
    for (const Node& node : graph.graph().nodes()) {
      const absl::string_view kind = node.op->kind();
      if (absl::StartsWith(kind, "conv2d") || absl::StartsWith(kind, "linear")) {
        expected += graph.graph().CostOf(node).flops;
      }
    }
    auto& cpu = static_cast<cpu::CpuExecutable&>(**executable);
    cpu.StartProfile();
    double flops = 0;
    for (const StepTime& step : cpu.profile()) {
      if (absl::StrContains(step.name, "conv2d") || absl::StrContains(step.name, "linear")) {
        flops += step.flops;
      }
    }
    EXPECT_EQ(flops, expected);
    EXPECT_GT(flops, 0);
  }
}

}  // namespace
}  // namespace tandem
