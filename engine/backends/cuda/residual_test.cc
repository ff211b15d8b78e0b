// Residual networks: what follows a normalisation is done along with it, forward and backward, in both types.

#include <cstdio>
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

// Null where the machine has no GPU, which is said.
std::unique_ptr<CudaDevice> Open(DType compute) {
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open("gpu:0", 0, {.compute = compute});
  if (device.ok()) return *std::move(device);
  std::printf("SKIPPED: residual networks on a GPU: %s\n", std::string(device.status().message()).c_str());
  return nullptr;
}

TEST(ResidualTest, TrainsAndEvaluatesLikeTheOracle) {
  const std::unique_ptr<CudaDevice> wide = Open(DType::kFloat32);
  const std::unique_ptr<CudaDevice> narrow = Open(DType::kBFloat16);
  if (wide == nullptr || narrow == nullptr) GTEST_SKIP();
  ExpectResidualNetworksAgree(*CreateReferenceDevice(), {{wide.get()}, {narrow.get(), true}});
}

// Nothing of a normalisation's surroundings is a pass over memory of its own.
TEST(ResidualTest, LeavesNoReluAndNoSumAlone) {
  const CaseGraph graph = ResidualNetwork({}, DType::kFloat32);
  const std::unique_ptr<CudaDevice> device = Open(DType::kBFloat16);
  if (device == nullptr) GTEST_SKIP();
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
