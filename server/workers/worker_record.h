#ifndef TANDEM_SERVER_WORKERS_WORKER_RECORD_H_
#define TANDEM_SERVER_WORKERS_WORKER_RECORD_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

// Which processes a daemon started for an attempt of a job, for the next daemon: "workers/<job>" in the state
// folder, where no worker may write. A worker's lock says the same (WorkerLock), but a worker that was taken
// over can free that, remove it, or write there what it likes.
struct WorkerRecord {
  struct Process {
    pid_t pid = 0;
    // When it began, in the kernel's ticks since the machine's start: another process that gets the number
    // later began later.
    uint64_t start = 0;
  };

  int attempt = 0;
  // Of the attempt; more than `processes` where the daemon died between the start of one and its record.
  int workers = 1;
  // By worker.
  std::vector<Process> processes = {};

  bool complete() const { return static_cast<int>(processes.size()) == workers; }
};

// Where the record of the job with this folder, "<state folder>/jobs/<job>", stands.
std::string WorkerRecordPath(const std::string& job_folder);

// Replaces the job's record. It need not outlive the machine's start, and is not synced.
absl::Status WriteWorkerRecord(const std::string& job_folder, const WorkerRecord& record);

// Nothing where there is none that can be read, where the machine was started anew since, in another
// container, and where the folder is a copy.
std::optional<WorkerRecord> ReadWorkerRecord(const std::string& job_folder);

// Once none of its processes is left.
void RemoveWorkerRecord(const std::string& job_folder);

// When the process began, as in Process; 0 where there is none.
uint64_t StartOfProcess(pid_t pid);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_RECORD_H_
