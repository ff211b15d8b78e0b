#ifndef TANDEM_SERVER_WORKERS_LINGERING_JOBS_H_
#define TANDEM_SERVER_WORKERS_LINGERING_JOBS_H_

#include <string>
#include <vector>

#include "server/jobs/job_machine.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Jobs with folders in `jobs_folder` that have ended, are paused, wait again or were deleted, while a worker
// of theirs still runs: it hangs, or the daemon was replaced before it was gone. Those that wait
// again are PAUSED here; of those that were deleted only name, attempt and folder are known, and their state
// is unspecified.
std::vector<v1::Job> FindLingeringJobs(const std::string& jobs_folder, JobMachine* jobs);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_LINGERING_JOBS_H_
