#ifndef TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_
#define TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_

#include <memory>
#include <string>

#include "engine/backend/device.h"

namespace tandem {

// Creates the oracle. It computes each op by the loops of its definition, on the host, in float64 for every
// type of the graph. Only inputs and outputs are rounded to the graph's type. It is slow. All other backends
// are compared with it. Its executables fail with INVALID_ARGUMENT for a label that is no class.
std::unique_ptr<Device> CreateReferenceDevice(std::string name = "reference:0");

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_
