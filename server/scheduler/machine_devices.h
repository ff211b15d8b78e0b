#ifndef TANDEM_SERVER_SCHEDULER_MACHINE_DEVICES_H_
#define TANDEM_SERVER_SCHEDULER_MACHINE_DEVICES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/scheduler/host_resources.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// The division of a machine into devices.
struct DeviceOptions {
  // The number of CPU devices. 0: one per core.
  int cpu_devices = 0;
  // The threads of each CPU device. 0: an equal part of the cores, at least 1.
  int cpu_threads = 0;
  // The number of REFERENCE devices.
  int reference_devices = 0;
  // The memory that all devices except GPUs may plan for, in bytes. 0: nine tenths of the machine's.
  int64_t memory_bytes = 0;
};

// Returns the devices, sorted by kind and index. Each device gets an equal part of the memory. A GPU gets its
// own memory, minus the part of drivers and libraries. Pure. INVALID_ARGUMENT: an option is negative or above
// 4096, or the memory exceeds the machine's.
absl::StatusOr<std::vector<v1::Device>> MakeDevices(const DeviceOptions& options, const HostResources& host);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_MACHINE_DEVICES_H_
