#ifndef TANDEM_ENGINE_BACKEND_DEVICE_PROBE_H_
#define TANDEM_ENGINE_BACKEND_DEVICE_PROBE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/backend/device.h"

namespace tandem {

// Whether a device does what it should, found out in a second or so: what is written into `memory_bytes` of
// its memory comes back, and a product of matrices, whose result is exact, is right several times over.
// DATA_LOSS: it is not, and where; otherwise the error of the device.
absl::Status ProbeDevice(Device& device, int64_t memory_bytes = int64_t{64} << 20);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DEVICE_PROBE_H_
