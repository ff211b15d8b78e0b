#ifndef TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_
#define TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_

#include <cstdint>
#include <string>

namespace tandem {

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
};

// Looks at the machine that this process is on. CPU affinity and the limits of control groups (version 2)
// count.
HostResources ProbeHost();

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_HOST_RESOURCES_H_
