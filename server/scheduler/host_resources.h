#ifndef TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_
#define TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/v1/device.pb.h"

namespace tandem {

// A GPU that jobs can use.
struct HostGpu {
  // For example "NVIDIA H200".
  std::string model;
  // Without the variable fields.
  v1::GpuStatus status;
};

// The machine's resources for jobs.
struct HostResources {
  // The number of cores that this process may use.
  int cores = 1;
  // For example "AMD EPYC 9654"; empty if unknown.
  std::string cpu_model;
  // The bytes of memory that this process may use.
  int64_t memory_bytes = 0;
  // True if the processor has bfloat16 instructions (AVX512_BF16).
  bool bfloat16 = false;
  // Sorted by index.
  std::vector<HostGpu> gpus = {};
};

// Returns this machine's resources without GPUs. Respects CPU affinity and the limits of control groups: of
// memory in versions 1 and 2, of CPU time in version 2.
HostResources ProbeHost();

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_
