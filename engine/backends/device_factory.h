#ifndef TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_
#define TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"

namespace tandem {

// How a device is used.
struct DeviceOptions {
  int threads = 1;  // Where its kind has threads; below 1 counts as 1.
  // What networks are computed in: float32, bfloat16 or float16. The reference backend has its own.
  DType compute = DType::kFloat32;
  // Of GPUs; see v1::Training.
  bool allow_tf32 = false;
  bool deterministic = false;
  // Of GPUs; see v1::GpuOptions. 0: the default there.
  int64_t memory_limit_bytes = 0;
  int64_t workspace_limit_bytes = 0;
  int max_threads_per_block = 0;
  int max_blocks = 0;
};

// Opens the device "<kind>:<index>", perhaps behind "devices/": "cpu:0", "devices/gpu:1". INVALID_ARGUMENT
// for another form of name, UNIMPLEMENTED for a kind that this program was built without, UNAVAILABLE for a
// GPU that is not there or whose driver or libraries are not.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(absl::string_view name, const DeviceOptions& options = {});

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_
