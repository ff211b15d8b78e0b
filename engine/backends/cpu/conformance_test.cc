#include <memory>
#include <string>

#include "engine/backend/device_conformance.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"

namespace tandem {
namespace {

DeviceMaker Maker(int threads) {
  return {
      .backend = BackendKind::kCpu,
      .make = [threads](
                  int index) { return std::make_unique<CpuDevice>("cpu:" + std::to_string(index), threads); },
      .make_reference = [] { return CreateReferenceDevice(); },
      .tolerance = 1e-5};
}

INSTANTIATE_TEST_SUITE_P(OneThread, DeviceConformance, testing::Values(Maker(1)));
INSTANTIATE_TEST_SUITE_P(TwoThreads, DeviceConformance, testing::Values(Maker(2)));

}  // namespace
}  // namespace tandem
