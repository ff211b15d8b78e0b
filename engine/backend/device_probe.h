#ifndef TANDEM_ENGINE_BACKEND_DEVICE_PROBE_H_
#define TANDEM_ENGINE_BACKEND_DEVICE_PROBE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/backend/device.h"

namespace tandem {

// Tests a device in about a second. Writes `memory_bytes` of its memory and reads them back. Then computes an
// exact product of matrices several times. DATA_LOSS with the place if a result is wrong. Otherwise returns
// the device's error.
absl::Status ProbeDevice(Device& device, int64_t memory_bytes = int64_t{64} << 20);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DEVICE_PROBE_H_
