// Residual networks: the ops after a normalisation run together with it, forward and backward, in every
// layout and in both types.

#include <memory>
#include <vector>

#include "engine/backend/residual_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/backends/reference/reference_device.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(ResidualTest, TrainsAndEvaluatesLikeTheOracle) {
  CpuDevice one("cpu:0", 1);
  CpuDevice two("cpu:1", 2);
  CpuDevice narrow("cpu:2", 2, DType::kBFloat16);
  std::vector<ResidualDevice> devices = {{&one}, {&two}};
  if (CpuDevice::OffersBFloat16()) devices.push_back({&narrow, true});
  ExpectResidualNetworksAgree(*CreateReferenceDevice(), devices);
}

// No op around a normalisation is a separate pass over memory.
TEST(ResidualTest, LeavesNoReluAndNoSumAlone) {
  const CaseGraph graph = ResidualNetwork({}, DType::kFloat32);
  CpuDevice device("cpu:0", 1);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> executable =
      device.Compile(graph.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  auto& cpu = static_cast<cpu::CpuExecutable&>(**executable);
  cpu.StartProfile();
  for (const auto& step : cpu.profile()) {
    EXPECT_TRUE(step.name != "relu" && step.name != "add" && step.name != "relu_grad") << step.name;
  }
}

}  // namespace
}  // namespace tandem
