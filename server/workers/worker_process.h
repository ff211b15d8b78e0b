#ifndef TANDEM_SERVER_WORKERS_WORKER_PROCESS_H_
#define TANDEM_SERVER_WORKERS_WORKER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/process_group.h"
#include "server/workers/worker_lock.h"
#include "server/workers/worker_record.h"

namespace tandem {

// Starts a worker. The process inherits only `lock`, at WorkerLock::kInheritedFd. Appends its stdout and
// stderr to the file `log_path`. NOT_FOUND: no such program or interpreter, or the log's folder does not
// exist. Other errors: the log cannot be opened, or the program cannot be run.
absl::StatusOr<std::unique_ptr<ProcessGroup>> StartWorker(const ProcessGroup::Command& command,
                                                          const std::string& log_path,
                                                          const WorkerLock& lock);

// Finds a recorded process. NOT_FOUND: it has ended.
absl::StatusOr<std::unique_ptr<ProcessGroup>> FindWorker(const WorkerRecord::Process& process);

// Finds the worker that holds this lock in a job's folder, for an unrecorded worker. NOT_FOUND: nobody holds
// the lock. UNAVAILABLE: the holder has just been started, or is no worker of the job. Looks through all
// processes of the machine.
absl::StatusOr<std::unique_ptr<ProcessGroup>> FindWorkerByLock(const std::string& lock_path);

// Completes "The worker " for people: "was killed by signal 9 (SIGKILL): ...".
std::string DescribeEnd(const ProcessGroup::End& end);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_PROCESS_H_
