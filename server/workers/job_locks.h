#ifndef TANDEM_SERVER_WORKERS_JOB_LOCKS_H_
#define TANDEM_SERVER_WORKERS_JOB_LOCKS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_lock.h"

namespace tandem {

// The locks in a job's folder: that of the first worker, whether it is there or not, and those of as many
// others as a run of the job has had; a worker that was taken over may have made any number of files, of
// which no more are looked at than a job may have workers.
int CountLocks(const JobFolder& folder);

// Who holds one of them, the first one first; nothing where all are free: then no worker of the job runs.
absl::StatusOr<std::optional<WorkerLock::Holder>> FindHolderOfAny(const JobFolder& folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_JOB_LOCKS_H_
