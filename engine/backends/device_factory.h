#ifndef TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_
#define TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/device.h"

namespace tandem {

// The use of a device.
struct DeviceOptions {
  int threads = 1;  // For kinds with threads. Values below 1 count as 1.
  // The type of computations: float32, bfloat16 or float16. The reference backend ignores it.
  DType compute = DType::kFloat32;
  // For GPUs. See v1::Training.
  bool allow_tf32 = false;
  bool deterministic = false;
  // For GPUs. See v1::GpuOptions. 0 means its default.
  int64_t memory_limit_bytes = 0;
  int64_t workspace_limit_bytes = 0;
  int max_threads_per_block = 0;
  int max_blocks = 0;
  // For GPUs: the most replicas of the job on a GPU.
  int replicas_per_device = 1;
};

// Opens the device "<kind>:<index>", perhaps after "devices/": "cpu:0", "devices/gpu:1". INVALID_ARGUMENT for
// another form of name. UNIMPLEMENTED if this program was built without the kind. UNAVAILABLE if the GPU, its
// driver or its libraries are missing.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(absl::string_view name, const DeviceOptions& options = {});

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKENDS_DEVICE_FACTORY_H_
