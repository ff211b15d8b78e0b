// Residual networks: the ops after a normalisation run together with it, forward and backward, in both types.

#include <memory>
#include <string>

#include "engine/backend/residual_cases.h"
#include "engine/backends/cuda/cuda_device.h"
#include "engine/backends/cuda/cuda_executable.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/reference/reference_device.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns why there is no GPU, or "". If there is a GPU, it must open.
std::string WhyNoGpu() {
  const absl::StatusOr<int> devices = cuda::CountDevices();
  if (!devices.ok()) return std::string(devices.status().message());
  return *devices == 0 ? "there is no GPU" : "";
}

std::unique_ptr<CudaDevice> Open(DType compute) {
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open("gpu:0", 0, {.compute = compute});
  if (device.ok()) return *std::move(device);
  ADD_FAILURE() << device.status();
  return nullptr;
}

TEST(ResidualTest, TrainsAndEvaluatesLikeTheOracle) {
  if (const std::string why = WhyNoGpu(); !why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<CudaDevice> wide = Open(DType::kFloat32);
  const std::unique_ptr<CudaDevice> narrow = Open(DType::kBFloat16);
  ASSERT_TRUE(wide != nullptr && narrow != nullptr);
  ExpectResidualNetworksAgree(*CreateReferenceDevice(), {{wide.get()}, {narrow.get(), true}});
}

// No op around a normalisation is a separate pass over memory.
TEST(ResidualTest, LeavesNoReluAndNoSumAlone) {
  if (const std::string why = WhyNoGpu(); !why.empty()) GTEST_SKIP() << why;
  const CaseGraph graph = ResidualNetwork({}, DType::kFloat32);
  const std::unique_ptr<CudaDevice> device = Open(DType::kBFloat16);
  ASSERT_NE(device, nullptr);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> executable =
      device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  auto& cuda = static_cast<cuda::CudaExecutable&>(**executable);
  ASSERT_TRUE(cuda.StartProfile().ok());
  for (const auto& step : cuda.profile()) {
    EXPECT_TRUE(step.name != "relu" && step.name != "add" && step.name != "relu_grad") << step.name;
    EXPECT_NE(step.name, "grad_bias");
  }
}

}  // namespace
}  // namespace tandem
