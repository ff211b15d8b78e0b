#ifndef TANDEM_SERVER_WORKERS_WORKER_RECORD_H_
#define TANDEM_SERVER_WORKERS_WORKER_RECORD_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

// The processes that a daemon started for an attempt of a job, for the next daemon: "workers/<job>" in the
// state folder, where no worker may write. A worker's lock says the same (WorkerLock), but a hijacked worker
// can free, remove or overwrite its lock.
struct WorkerRecord {
  struct Process {
    pid_t pid = 0;
    // The start of the process, in the kernel's ticks since the boot. A later process with the same pid has a
    // later start.
    uint64_t start = 0;
  };

  int attempt = 0;
  // The attempt's workers. More than `processes` if the daemon died between a start and its record.
  int workers = 1;
  // By worker.
  std::vector<Process> processes = {};

  bool complete() const { return static_cast<int>(processes.size()) == workers; }
};

// Returns the path of the record of the job with this folder, "<state folder>/jobs/<job>".
std::string WorkerRecordPath(const std::string& job_folder);

// Replaces the job's record. Not synced, because it is only valid during this boot.
absl::Status WriteWorkerRecord(const std::string& job_folder, const WorkerRecord& record);

// Returns nullopt if no record can be read, after a reboot, in another container, or if the folder is a copy.
std::optional<WorkerRecord> ReadWorkerRecord(const std::string& job_folder);

// Call after the end of all its processes.
void RemoveWorkerRecord(const std::string& job_folder);

// Returns the process's start, as in Process; 0 if it does not exist.
uint64_t StartOfProcess(pid_t pid);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_RECORD_H_
