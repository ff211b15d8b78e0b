#ifndef TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_
#define TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"

namespace tandem {

// Opens the device "<kind>:<index>", perhaps behind "devices/": "cpu:0", "devices/reference:1". `threads` is
// how many it may use where its kind has threads; below 1 counts as 1. `compute` is the type in which
// networks are computed, float32 or bfloat16; the reference backend has its own always. INVALID_ARGUMENT for
// another form of name, UNIMPLEMENTED for a kind that this program was built without.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(absl::string_view name, int threads,
                                                   DType compute = DType::kFloat32);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_
