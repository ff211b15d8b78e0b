#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/device_conformance.h"
#include "engine/backends/cuda/cuda_device.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/reference/reference_device.h"

namespace tandem {
namespace {

DeviceMaker Maker(DType compute, bool limited) {
  return {.backend = BackendKind::kCuda,
          .make = [=](int index) -> std::unique_ptr<Device> {
            auto device = CudaDevice::Open("gpu:" + std::to_string(index), 0,
                                           {.compute = compute,
                                            .deterministic = true,  // The suite compares runs bit for bit.
                                            .max_threads_per_block = limited ? 128 : 0,
                                            .max_blocks = limited ? 3 : 0});
            if (device.ok()) return *std::move(device);
            ADD_FAILURE() << device.status();
            return nullptr;
          },
          .make_reference = [] { return CreateReferenceDevice(); },
          .tolerance = compute == DType::kFloat32 ? 1e-5 : 2e-2,
          .host_memory = cuda::IsEmulated()};
}

// Empty on a machine without a GPU, with a message.
std::vector<DeviceMaker> Makers(DType compute, bool limited = false) {
  const absl::StatusOr<int> devices = cuda::CountDevices();
  if (devices.ok() && *devices > 0) return {Maker(compute, limited)};
  std::printf("SKIPPED: DeviceConformance on a GPU (%s): %s\n", std::string(ToString(compute)).c_str(),
              devices.ok() ? "there is none" : std::string(devices.status().message()).c_str());
  return {};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);
INSTANTIATE_TEST_SUITE_P(Float32, DeviceConformance, testing::ValuesIn(Makers(DType::kFloat32)));
INSTANTIATE_TEST_SUITE_P(BFloat16, DeviceConformance, testing::ValuesIn(Makers(DType::kBFloat16)));
INSTANTIATE_TEST_SUITE_P(Float16, DeviceConformance, testing::ValuesIn(Makers(DType::kFloat16)));
// With the smallest number of threads that a job may request, and few blocks.
INSTANTIATE_TEST_SUITE_P(Limited, DeviceConformance,
                         testing::ValuesIn(Makers(DType::kFloat32, /*limited=*/true)));

}  // namespace
}  // namespace tandem
