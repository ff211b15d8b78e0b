#include "engine/backend/device_conformance.h"
#include "engine/backends/reference/reference_device.h"

namespace tandem {
namespace {

// Compares the oracle with itself, so only promises other than the numbers are tested. gradient_test and the
// golden cases test the numbers.
INSTANTIATE_TEST_SUITE_P(Reference, DeviceConformance,
                         testing::Values(DeviceMaker{.backend = BackendKind::kReference,
                                                     .make = [](int) { return CreateReferenceDevice(); },
                                                     .make_reference = [] { return CreateReferenceDevice(); },
                                                     .tolerance = 1e-12}));

}  // namespace
}  // namespace tandem
