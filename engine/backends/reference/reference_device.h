#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_

#include <memory>
#include <string>

#include "engine/backend/device.h"

namespace tandem {

// The oracle: computes on the host by the loops that an op's definition says, in float64 whatever type the
// graph asks for; only what goes in and out is rounded to that type. Slow; what every other backend is
// compared with. Its executables fail with INVALID_ARGUMENT for a label that is no class.
std::unique_ptr<Device> CreateReferenceDevice(std::string name = "reference:0");

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_
