#ifndef TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_
#define TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/v1/device.pb.h"

namespace tandem {

// A GPU that jobs can use.
struct HostGpu {
  // "NVIDIA H200".
  std::string model;
  // Without what changes.
  v1::GpuStatus status;
};

// What a machine has for jobs.
struct HostResources {
  // Cores that this process may use.
  int cores = 1;
  // "AMD EPYC 9654"; empty where the system does not say.
  std::string cpu_model;
  // Bytes of memory that this process may use.
  int64_t memory_bytes = 0;
  // Whether its processor has instructions for bfloat16 (AVX512_BF16).
  bool bfloat16 = false;
  // In the order of their indices.
  std::vector<HostGpu> gpus = {};
};

// Looks at the machine that this process is on, but for GPUs. CPU affinity and the limits of control groups
// (version 2) count.
HostResources ProbeHost();

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_
