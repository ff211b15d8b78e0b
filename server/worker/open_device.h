#ifndef TANDEM_SERVER_WORKER_OPEN_DEVICE_H_
#define TANDEM_SERVER_WORKER_OPEN_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/backend/device.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// Opens a device of a kind that this program was built with a backend for. UNIMPLEMENTED for another kind.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const v1::Device& device);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_OPEN_DEVICE_H_
