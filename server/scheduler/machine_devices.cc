#include "server/scheduler/machine_devices.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/training/replica_spec.h"

namespace tandem {
namespace {

constexpr int kMostDevices = 4096;
// The GPU memory of the driver, of a worker's CUDA context and of cuDNN's and cuBLAS's code. At most a tenth
// of the GPU's memory is subtracted.
constexpr int64_t kGpuOverheadBytes = int64_t{2} << 30;

absl::Status CheckCount(absl::string_view option, int value) {
  if (value >= 0 && value <= kMostDevices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", value, "; it must be from 0 to ", kMostDevices));
}

v1::Device MakeDevice(v1::DeviceKind kind, int index) {
  v1::Device device;
  device.set_name(DeviceName(kind, index));
  device.set_kind(kind);
  device.set_index(index);
  return device;
}

}  // namespace

absl::StatusOr<std::vector<v1::Device>> MakeDevices(const DeviceOptions& options, const HostResources& host) {
  TANDEM_RETURN_IF_ERROR(CheckCount("--cpu-devices", options.cpu_devices));
  TANDEM_RETURN_IF_ERROR(CheckCount("--threads-per-cpu-device", options.cpu_threads));
  TANDEM_RETURN_IF_ERROR(CheckCount("--reference-devices", options.reference_devices));
  if (options.memory_bytes < 0 || options.memory_bytes > host.memory_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("--memory is ", options.memory_bytes,
                                                   " bytes; it must be from 0 to the machine's ",
                                                   host.memory_bytes));
  }
  const int cpu_devices = options.cpu_devices > 0 ? options.cpu_devices : std::max(1, host.cores);
  const int cpu_threads =
      options.cpu_threads > 0 ? options.cpu_threads : std::max(1, host.cores / cpu_devices);
  const int64_t memory = options.memory_bytes > 0 ? options.memory_bytes : host.memory_bytes / 10 * 9;
  const int64_t share = memory / (cpu_devices + options.reference_devices);

  std::vector<v1::Device> devices;
  for (int i = 0; i < cpu_devices; ++i) {
    v1::Device& device = devices.emplace_back(MakeDevice(v1::DEVICE_KIND_CPU, i));
    device.set_model(host.cpu_model);
    device.set_memory_bytes(share);
    device.set_threads(cpu_threads);
    device.add_precisions(v1::PRECISION_FLOAT32);
    if (host.bfloat16) device.add_precisions(v1::PRECISION_BFLOAT16);
  }
  for (size_t i = 0; i < host.gpus.size(); ++i) {
    const HostGpu& gpu = host.gpus[i];
    v1::Device& device = devices.emplace_back(MakeDevice(v1::DEVICE_KIND_GPU, static_cast<int>(i)));
    device.set_model(gpu.model);
    const int64_t total = gpu.status.total_memory_bytes();
    device.set_memory_bytes(total - std::min(kGpuOverheadBytes, total / 10));
    device.add_precisions(v1::PRECISION_FLOAT32);
    device.add_precisions(v1::PRECISION_BFLOAT16);
    device.add_precisions(v1::PRECISION_FLOAT16);
    *device.mutable_gpu() = gpu.status;
  }
  for (int i = 0; i < options.reference_devices; ++i) {
    v1::Device& device = devices.emplace_back(MakeDevice(v1::DEVICE_KIND_REFERENCE, i));
    device.set_model(host.cpu_model);
    device.set_memory_bytes(share);
    device.set_threads(1);
    device.add_precisions(v1::PRECISION_FLOAT64);
  }
  return devices;
}

}  // namespace tandem
