#include <memory>
#include <string>
#include <vector>

#include "engine/backend/device_conformance.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"

namespace tandem {
namespace {

DeviceMaker Maker(int threads, DType compute = DType::kFloat32) {
  return {.backend = BackendKind::kCpu,
          .make =
              [=](int index) {
                return std::make_unique<CpuDevice>("cpu:" + std::to_string(index), threads, compute);
              },
          .make_reference = [] { return CreateReferenceDevice(); },
          .tolerance = compute == DType::kBFloat16 ? 2e-2 : 1e-5};
}

std::vector<DeviceMaker> BFloat16Makers() {
  if (!CpuDevice::OffersBFloat16()) return {};
  return {Maker(2, DType::kBFloat16)};
}

INSTANTIATE_TEST_SUITE_P(OneThread, DeviceConformance, testing::Values(Maker(1)));
INSTANTIATE_TEST_SUITE_P(TwoThreads, DeviceConformance, testing::Values(Maker(2)));
INSTANTIATE_TEST_SUITE_P(BFloat16, DeviceConformance, testing::ValuesIn(BFloat16Makers()));

}  // namespace
}  // namespace tandem
