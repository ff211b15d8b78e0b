#ifndef TANDEM_SERVER_WORKER_GPU_TOPOLOGY_H_
#define TANDEM_SERVER_WORKER_GPU_TOPOLOGY_H_

#include <string>
#include <vector>

#include "tandem/v1/device.pb.h"

namespace tandem {

// For the log, how the GPUs among `devices` are connected with each other, by what the daemon found out:
// "gpu:0 and gpu:1: 18 NVLinks, peer access; gpu:0 and gpu:2: no peer access". Empty where there are not two.
std::string DescribeGpuTopology(const std::vector<v1::Device>& devices);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_GPU_TOPOLOGY_H_
