#include "engine/backends/device_factory.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/backends/cpu/cpu_device.h"
#ifdef TANDEM_CUDA_FOUND
#include "engine/backends/cuda/cuda_device.h"
#endif
#include "engine/backends/reference/reference_device.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(absl::string_view name, const DeviceOptions& options) {
  const absl::string_view short_name = absl::StripPrefix(name, "devices/");
  const size_t colon = short_name.find(':');
  int index = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(short_name.substr(colon + 1), &index) ||
      index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no device's name; give one such as \"cpu:0\""));
  }
  const absl::string_view kind = short_name.substr(0, colon);
  if (kind == "cpu") {
    return std::make_unique<CpuDevice>(std::string(short_name), std::max(options.threads, 1),
                                       options.compute);
  }
  if (kind == "reference") return CreateReferenceDevice(std::string(short_name));
#ifdef TANDEM_CUDA_FOUND
  if (kind == "gpu") {
    return CudaDevice::Open(std::string(short_name), index,
                            {.compute = options.compute,
                             .allow_tf32 = options.allow_tf32,
                             .deterministic = options.deterministic,
                             .memory_limit_bytes = options.memory_limit_bytes,
                             .workspace_limit_bytes = options.workspace_limit_bytes,
                             .max_threads_per_block = options.max_threads_per_block,
                             .max_blocks = options.max_blocks,
                             .replicas_per_device = options.replicas_per_device});
  }
#else
  if (kind == "gpu") {
    return absl::UnimplementedError(absl::StrCat(
        "\"", name, "\": this program was built without CUDA; build it where the CUDA toolkit is"));
  }
#endif
  return absl::UnimplementedError(
      absl::StrCat("\"", name, "\": this program was built without devices of the kind \"", kind, "\""));
}

}  // namespace tandem
