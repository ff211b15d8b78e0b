#include "tests/golden/gpu_backends.h"

#include <cstdlib>
#include <iostream>
#include <memory>

#include "engine/backends/cuda/cuda_device.h"
#include "engine/backends/cuda/driver/driver.h"

namespace tandem {
namespace {

std::unique_ptr<Device> OpenGpu(DType compute) {
  auto device = CudaDevice::Open("gpu:0", 0, {.compute = compute});
  if (device.ok()) return *std::move(device);
  std::cerr << device.status() << std::endl;
  std::exit(1);
}

}  // namespace

std::vector<GoldenBackend> GpuBackends() {
  if (const absl::StatusOr<int> count = cuda::CountDevices(); !count.ok() || *count == 0) {
    std::cout << "SKIPPED: golden cases on a GPU: "
              << (count.ok() ? "there is none" : std::string(count.status().message())) << std::endl;
    return {};
  }
  return {{"gpu", [](int) { return OpenGpu(DType::kFloat32); }, 1e-4},
          {"gpu-bfloat16", [](int) { return OpenGpu(DType::kBFloat16); }, 2e-2, true},
          {"gpu-float16", [](int) { return OpenGpu(DType::kFloat16); }, 2e-2, true}};
}

}  // namespace tandem
