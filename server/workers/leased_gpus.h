#ifndef TANDEM_SERVER_WORKERS_LEASED_GPUS_H_
#define TANDEM_SERVER_WORKERS_LEASED_GPUS_H_

#include <vector>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Replaces the names of GPUs in Job.devices by the present names. A worker that outlived its daemon keeps its
// GPUs, but the GPUs may have new numbers. The worker's launch file has their UUIDs. `devices` are all
// devices of the daemon. A GPU that the daemon no longer has gets its UUID as name. Does nothing if the job
// has no GPUs, or if the launch file does not exist.
void RenameLeasedGpus(const std::vector<v1::Device>& devices, v1::Job* job);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LEASED_GPUS_H_
