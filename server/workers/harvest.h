#ifndef TANDEM_SERVER_WORKERS_HARVEST_H_
#define TANDEM_SERVER_WORKERS_HARVEST_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/jobs/job_machine.h"

namespace tandem {

// Gives the JobMachine what a worker that is gone has left in its spool, and returns where the job stands
// then. What was applied before changes nothing, so that it can be repeated. No spool is an empty one. Stops
// with CANCELLED once `stopped` returns true. Errors: those of reading the file and of
// JobMachine::ApplyWorkerEvents. Blocks; not to be called on the store's writer thread.
absl::StatusOr<JobMachine::WorkerPosition> HarvestSpool(JobMachine* jobs, const std::string& job_id,
                                                        int32_t attempt, const std::string& spool_path,
                                                        const std::function<bool()>& stopped);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_HARVEST_H_
