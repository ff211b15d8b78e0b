#include "server/workers/lingering_jobs.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"
#include "third_party/spdlog/log.h"

namespace tandem {

std::vector<v1::Job> FindLingeringJobs(const std::string& jobs_folder, JobMachine* jobs) {
  std::vector<v1::Job> lingering;
  std::error_code error;
  std::filesystem::directory_iterator entry(jobs_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string id = entry->path().filename().string();
    const absl::StatusOr<RunningWorkers> running = FindRunningWorkers(JobFolder(entry->path().string()));
    if (!running.ok() || running->pids.empty()) continue;
    absl::StatusOr<v1::Job> job = jobs->Get(id);
    const bool was_preempted = job.ok() && job->state() == v1::JOB_STATE_QUEUED;
    if (job.ok() && (IsAtRest(job->state()) || was_preempted) && job->attempt() == running->attempt) {
      lingering.push_back(*std::move(job));
      // Its worker must end.
      if (was_preempted) lingering.back().set_state(v1::JOB_STATE_PAUSED);
    } else if (const absl::StatusOr<bool> was_deleted = jobs->WasDeleted(id);
               was_deleted.ok() && *was_deleted) {
      // Its devices are unknown.
      v1::Job& deleted = lingering.emplace_back();
      deleted.set_name(JobName(id));
      deleted.set_attempt(running->attempt);
      deleted.set_folder(entry->path().string());
    }
  }
  if (error) {
    spdlog::warn("cannot look for workers whose jobs have ended in {}: {}", jobs_folder, error.message());
  }
  return lingering;
}

}  // namespace tandem
