#ifndef TANDEM_SERVER_WORKER_GPU_TOPOLOGY_H_
#define TANDEM_SERVER_WORKER_GPU_TOPOLOGY_H_

#include <string>
#include <vector>

#include "tandem/v1/device.pb.h"

namespace tandem {

// Returns a text for the log about the connections between the GPUs in `devices`, as the daemon found them:
// "gpu:0 and gpu:1: 18 NVLinks, peer access; gpu:0 and gpu:2: no peer access". Empty with less than two GPUs.
std::string DescribeGpuTopology(const std::vector<v1::Device>& devices);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_GPU_TOPOLOGY_H_
