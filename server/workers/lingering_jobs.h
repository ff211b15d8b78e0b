#ifndef TANDEM_SERVER_WORKERS_LINGERING_JOBS_H_
#define TANDEM_SERVER_WORKERS_LINGERING_JOBS_H_

#include <string>
#include <vector>

#include "server/jobs/job_machine.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns the jobs in `jobs_folder` that have ended, are paused, are queued again or were deleted, but whose
// worker still runs: the worker hangs, or the daemon was replaced before the worker's end. A job that is
// queued again is returned as PAUSED. A deleted job has only its name, attempt and folder; its state is
// unspecified.
std::vector<v1::Job> FindLingeringJobs(const std::string& jobs_folder, JobMachine* jobs);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LINGERING_JOBS_H_
