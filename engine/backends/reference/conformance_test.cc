#include "engine/backend/device_conformance.h"
#include "engine/backends/reference/reference_device.h"

namespace tandem {
namespace {

// Against itself: what is left are the promises beside the numbers, which gradient_test and the golden cases
// hold.
INSTANTIATE_TEST_SUITE_P(Reference, DeviceConformance,
                         testing::Values(DeviceMaker{.backend = BackendKind::kReference,
                                                     .make = [](int) { return CreateReferenceDevice(); },
                                                     .make_reference = [] { return CreateReferenceDevice(); },
                                                     .tolerance = 1e-12}));

}  // namespace
}  // namespace tandem
