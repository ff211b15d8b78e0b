#include "server/workers/job_locks.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "server/workers/worker_lock.h"
#include "server/workers/worker_record.h"

namespace tandem {
namespace {

// The most replicas of a job.
constexpr int kMostLocks = 1024;

}  // namespace

int CountLocks(const JobFolder& folder) {
  int count = 1;
  std::error_code error;
  while (count < kMostLocks && std::filesystem::exists(folder.LockPath(count), error)) ++count;
  return count;
}

absl::StatusOr<RunningWorkers> FindRunningWorkers(const JobFolder& folder) {
  RunningWorkers running;
  const std::optional<WorkerRecord> record = ReadWorkerRecord(folder.path());
  if (record.has_value()) {
    running.attempt = record->attempt;
    for (const WorkerRecord::Process& process : record->processes) {
      const absl::Status found = FindWorker(process).status();
      if (found.ok()) running.pids.push_back(process.pid);
      if (!found.ok() && !absl::IsNotFound(found)) return found;
    }
    if (!running.pids.empty() || record->complete()) return running;
  }
  const int count = CountLocks(folder);
  for (int worker = 0; worker < count; ++worker) {
    TANDEM_ASSIGN_OR_RETURN(const std::optional<WorkerLock::Holder> holder,
                            WorkerLock::FindHolder(folder.LockPath(worker)));
    if (!holder.has_value()) continue;
    if (running.pids.empty()) running.attempt = holder->attempt;
    running.pids.push_back(holder->pid);
  }
  return running;
}

absl::StatusOr<std::vector<std::unique_ptr<ProcessGroup>>> FindWorkerProcesses(
    const JobFolder& folder, int attempt, const std::function<bool()>& stopped) {
  const std::optional<WorkerRecord> record = ReadWorkerRecord(folder.path());
  const bool is_recorded = record.has_value() && record->attempt == attempt;
  std::vector<std::unique_ptr<ProcessGroup>> processes(is_recorded ? record->workers : CountLocks(folder));
  for (size_t i = 0; i < processes.size(); ++i) {
    if (stopped())
      return absl::UnavailableError("cannot find the job's processes: the daemon is shutting down");
    absl::StatusOr<std::unique_ptr<ProcessGroup>> process =
        is_recorded && i < record->processes.size() ? FindWorker(record->processes[i])
                                                    : FindWorkerByLock(folder.LockPath(static_cast<int>(i)));
    if (process.ok()) {
      processes[i] = *std::move(process);
    } else if (!absl::IsNotFound(process.status())) {
      return absl::UnavailableError(process.status().message());
    }
  }
  return processes;
}

void RemoveStaleRecords(const std::string& jobs_folder,
                        const std::function<bool(const std::string& job_id)>& is_watched) {
  std::error_code error;
  const std::filesystem::path records =
      std::filesystem::path(WorkerRecordPath(jobs_folder + "/any")).parent_path();
  std::vector<std::string> folders;
  for (std::filesystem::directory_iterator entry(records, error), end; !error && entry != end;
       entry.increment(error)) {
    // An unfinished record is beside the record, and is removed with it.
    const std::string job_id(absl::StripSuffix(entry->path().filename().string(), kUnfinishedEnding));
    if (!is_watched(job_id)) folders.push_back(absl::StrCat(jobs_folder, "/", job_id));
  }
  for (const std::string& folder : folders) {
    const std::optional<WorkerRecord> record = ReadWorkerRecord(folder);
    const bool runs =
        record.has_value() && std::any_of(record->processes.begin(), record->processes.end(),
                                          [](const WorkerRecord::Process& process) {
                                            return !absl::IsNotFound(FindWorker(process).status());
                                          });
    if (!runs) RemoveWorkerRecord(folder);
  }
}

}  // namespace tandem
