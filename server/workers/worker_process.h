#ifndef TANDEM_SERVER_WORKERS_WORKER_PROCESS_H_
#define TANDEM_SERVER_WORKERS_WORKER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/workers/unique_fd.h"
#include "server/workers/worker_lock.h"
#include "server/workers/worker_record.h"

namespace tandem {

// A worker's process and its children: it leads its own session and process group. Not thread-safe.
// Destroying the object does not end the process.
class WorkerProcess {
 public:
  struct Command {
    std::string program;
    // Without the program's name.
    std::vector<std::string> arguments;
    // The whole environment, as "NAME=value".
    std::vector<std::string> environment;
    // The file for stdout and stderr, appended. Used only by Start.
    std::string log_path;
  };
  // Open files that become stdin, stdout and stderr; each above 2.
  struct StandardFiles {
    int in = -1;
    int out = -1;
    int error = -1;
  };

  // Starts a process that inherits only `lock`, at WorkerLock::kInheritedFd. Errors: the program cannot be
  // run.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(const Command& command, const WorkerLock& lock);

  // Starts a process that inherits only `files`. Errors as Start.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> StartWith(const Command& command,
                                                                  const StandardFiles& files);

  // Finds a recorded process. NOT_FOUND: it has ended.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Find(const WorkerRecord::Process& process);

  // Finds the worker that holds this lock in a job's folder, for an unrecorded worker. NOT_FOUND: nobody
  // holds the lock. UNAVAILABLE: the holder has just been started, or is no worker of the job. Looks through
  // all processes of the machine.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> FindByLock(const std::string& lock_path);

  pid_t pid() const { return pid_; }
  // Becomes readable when the process has ended. Owned by this object.
  int pidfd() const { return pidfd_.get(); }

  // Sends a signal to the process and its children. Does nothing if the process has ended.
  void SignalGroup(int signal);

  // The end of a process.
  struct End {
    // True only in the daemon that started it.
    bool known = false;
    // The exit code, if it exited by itself.
    int exit_code = -1;
    // The signal that ended it; 0 if it exited by itself.
    int signal = 0;
  };
  // Kills the rest of the group, and reaps the process. Call when pidfd() is readable.
  End Reap();
  // Kills the process, and waits for its end, at most a few seconds.
  void Kill();

 private:
  class SpawnSettings;

  // `settings` must have its file actions.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Spawn(const Command& command,
                                                              SpawnSettings& settings);

  WorkerProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  const pid_t pid_;
  const UniqueFd pidfd_;
};

// Completes "The worker " for people: "was killed by signal 9 (SIGKILL): ...".
std::string DescribeEnd(const WorkerProcess::End& end);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_PROCESS_H_
