#ifndef TANDEM_SERVER_WORKERS_LEASED_GPUS_H_
#define TANDEM_SERVER_WORKERS_LEASED_GPUS_H_

#include <vector>

#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Puts into Job.devices the names that the GPUs of its worker have in `devices`, all that the daemon has. A
// worker that outlived its daemon keeps its GPUs, and they may be numbered anew: the file that it was started
// with says which they are. One that the daemon has no more is called by its UUID. Jobs without GPUs, or
// without the file, stay as they are.
void RenameLeasedGpus(const std::vector<v1::Device>& devices, v1::Job* job);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LEASED_GPUS_H_
