#ifndef TANDEM_SERVER_WORKERS_LEASED_GPUS_H_
#define TANDEM_SERVER_WORKERS_LEASED_GPUS_H_

#include <vector>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Replaces the GPUs' names in Job.devices by their names in `devices`, all devices of the daemon. A worker
// that outlived its daemon keeps its GPUs, but they may be renumbered; its launch file has their UUIDs. A GPU
// that the daemon no longer has gets its UUID as name. Does nothing for a job without GPUs or without the
// file.
void RenameLeasedGpus(const std::vector<v1::Device>& devices, v1::Job* job);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LEASED_GPUS_H_
