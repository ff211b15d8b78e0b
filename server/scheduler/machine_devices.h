#ifndef TANDEM_SERVER_SCHEDULER_MACHINE_DEVICES_H_
#define TANDEM_SERVER_SCHEDULER_MACHINE_DEVICES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/scheduler/host_resources.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// How a machine is cut into devices.
struct DeviceOptions {
  // CPU devices; 0: one a core.
  int cpu_devices = 0;
  // Threads of each CPU device; 0: the cores split evenly, at least 1 each.
  int cpu_threads = 0;
  // Devices of the kind REFERENCE.
  int reference_devices = 0;
  // Memory that all devices but GPUs together may plan for, in bytes; 0: nine tenths of the machine's.
  int64_t memory_bytes = 0;
};

// The devices, by kind, then index, each with an equal part of the memory, and a GPU with its own, but for
// what drivers and libraries take of it. Pure. INVALID_ARGUMENT: an option is negative or above 4096, or the
// memory above the machine's.
absl::StatusOr<std::vector<v1::Device>> MakeDevices(const DeviceOptions& options, const HostResources& host);

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_MACHINE_DEVICES_H_
