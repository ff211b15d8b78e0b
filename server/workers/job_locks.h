#ifndef TANDEM_SERVER_WORKERS_JOB_LOCKS_H_
#define TANDEM_SERVER_WORKERS_JOB_LOCKS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_process.h"

namespace tandem {

// The locks in a job's folder: that of the first worker, whether it is there or not, and those of as many
// others as a run of the job has had; a worker that was taken over may have made any number of files, of
// which no more are looked at than a job may have workers.
int CountLocks(const JobFolder& folder);

struct RunningWorkers {
  int attempt = 0;
  // 0 for one that has not yet written who it is.
  std::vector<pid_t> pids;
};

// A job's workers that run. They are as their record says, and where that does not tell of all, as the locks
// do.
absl::StatusOr<RunningWorkers> FindRunningWorkers(const JobFolder& folder);

// Likewise as processes, by worker, null for those that are gone, of the attempt if the record is of that
// one. UNAVAILABLE: one is not known yet, or `stopped` returned true.
absl::StatusOr<std::vector<std::unique_ptr<WorkerProcess>>> FindWorkerProcesses(
    const JobFolder& folder, int attempt, const std::function<bool()>& stopped);

// Removes the records of jobs that nobody watches and whose workers are gone.
void RemoveStaleRecords(const std::string& jobs_folder,
                        const std::function<bool(const std::string& job_id)>& is_watched);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_JOB_LOCKS_H_
