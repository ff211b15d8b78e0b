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

// Returns the number of locks in a job's folder: the first worker's lock, which need not exist, plus the
// locks of other workers in any attempt. Bounded by the most workers of a job, because a hijacked worker may
// have created any number of files.
int CountLocks(const JobFolder& folder);

struct RunningWorkers {
  int attempt = 0;
  // 0 for a worker that has not written its pid yet.
  std::vector<pid_t> pids;
};

// Returns a job's running workers, by the job's record. If the record is incomplete, by the locks.
absl::StatusOr<RunningWorkers> FindRunningWorkers(const JobFolder& folder);

// Returns the processes of a job's workers, by worker; null for ended ones. Uses the record if it is the
// attempt's. UNAVAILABLE: a process is not known yet, or `stopped` returned true.
absl::StatusOr<std::vector<std::unique_ptr<ProcessGroup>>> FindWorkerProcesses(
    const JobFolder& folder, int attempt, const std::function<bool()>& stopped);

// Removes the records of unwatched jobs whose workers have ended.
void RemoveStaleRecords(const std::string& jobs_folder,
                        const std::function<bool(const std::string& job_id)>& is_watched);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_JOB_LOCKS_H_
