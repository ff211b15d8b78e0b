#include "server/worker/open_device.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const v1::Device& device) {
  switch (device.kind()) {
    case v1::DEVICE_KIND_CPU:
      return std::make_unique<CpuDevice>(device.name(), std::max(1, device.threads()));
    case v1::DEVICE_KIND_REFERENCE:
      return CreateReferenceDevice(device.name());
    default:
      return absl::UnimplementedError(absl::StrCat("this worker has no backend for ", device.name(),
                                                   ", a device of kind ",
                                                   v1::DeviceKind_Name(device.kind())));
  }
}

}  // namespace tandem
