#include "engine/backend/workspace.h"

#include <memory>
#include <vector>

#include "engine/backend/op_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/ops/convolution.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// The three ops of a convolution for the batch-blocked Winograd kernels. Their scratch is about 18 KiB for
// each channel and thread. The transformed weights and their gradients take 12 MiB each. With 304 channels
// and padding, bfloat16 may take the tiled Winograd kernels.
CaseGraph WideConvolution(DType dtype, int64_t channels = 300, int64_t padding = 0) {
  CaseGraph g(dtype);
  const Shape x_shape({16, channels, 4, 4});
  const Shape weight_shape({channels, channels, 3, 3});
  const Conv2dGeometry geometry = {.padding = {padding, padding}};
  const ValueId x = g.Input("x", x_shape);
  const ValueId weight = g.Variable("weight", weight_shape);
  const ValueId y = g.Add(std::make_shared<Conv2dOp>(geometry), {x, weight})[0];
  const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
  g.Add(std::make_shared<Conv2dGradInputOp>(geometry, x_shape), {grad_y, weight});
  g.Add(std::make_shared<Conv2dGradWeightOp>(geometry, weight_shape, false), {x, grad_y});
  return g;
}

void ExpectBelowTheCap(const CaseGraph& graph, DType compute) {
  CpuDevice device("cpu:0", 16, compute);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> executable =
      device.Compile(graph.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  const int64_t planned = PlanMemory(graph.graph()).arena_bytes;
  EXPECT_LE((*executable)->bytes() - planned, kWorkspaceCapBytes + WorkspaceShareBytes(planned));
}

TEST(WorkspaceTest, ManyThreadsAndChannelsStayBelowTheCap) {
  ExpectBelowTheCap(WideConvolution(DType::kFloat32), DType::kFloat32);
  if (CpuDevice::OffersBFloat16()) {
    ExpectBelowTheCap(WideConvolution(DType::kFloat32, 304, 1), DType::kBFloat16);
  }
}

TEST(WorkspaceTest, WhatIsComputedIsTheSame) {
  const std::unique_ptr<Device> reference = CreateReferenceDevice();
  const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, WideConvolution(reference->dtype()));
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const int threads : {1, 16}) {
    CpuDevice device("cpu:0", threads);
    const absl::StatusOr<RunResult> actual = RunCaseOn(device, WideConvolution(DType::kFloat32));
    ASSERT_TRUE(actual.ok()) << actual.status();
    for (size_t i = 0; i < expected->outputs.size(); ++i) {
      EXPECT_TRUE(RelativeError(actual->outputs[i], expected->outputs[i]) <= 1e-4)
          << threads << " threads, " << i;
    }
  }
}

TEST(WorkspaceTest, TheCapIsThatOfAllExecutablesOverTheSameVariables) {
  const CaseGraph graph = WideConvolution(DType::kFloat32);
  const int64_t planned = PlanMemory(graph.graph()).arena_bytes;
  CpuDevice device("cpu:0", 2);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  std::vector<std::unique_ptr<Executable>> executables;
  int64_t workspace = 0;
  for (int i = 0; i < 5; ++i) {
    absl::StatusOr<std::unique_ptr<Executable>> executable = device.Compile(graph.graph(), variables.get());
    ASSERT_TRUE(executable.ok()) << executable.status();
    workspace += (*executable)->bytes() - planned;
    executables.push_back(*std::move(executable));
  }
  EXPECT_LE(workspace, kWorkspaceCapBytes + 5 * WorkspaceShareBytes(planned));
  const int64_t last = executables.back()->bytes();
  EXPECT_GT(executables.front()->bytes(), last);
  // Destroyed executables take no workspace.
  executables.clear();
  const absl::StatusOr<std::unique_ptr<Executable>> again = device.Compile(graph.graph(), variables.get());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GT((*again)->bytes(), last);
}

}  // namespace
}  // namespace tandem
