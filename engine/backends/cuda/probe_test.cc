#include "engine/backend/device_probe.h"
#include "engine/backends/cuda/cuda_device.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(CudaProbeTest, AGpuThatWorksPasses) {
  const absl::StatusOr<int> devices = cuda::CountDevices();
  if (!devices.ok()) GTEST_SKIP() << devices.status();
  const auto device = CudaDevice::Open("gpu:0", 0, {.deterministic = true});
  ASSERT_TRUE(device.ok()) << device.status();
  const absl::Status status = ProbeDevice(**device, 1 << 20);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace tandem
