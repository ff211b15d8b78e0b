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

// A worker's process and all that it started: it leads a session and a process group of its own. Not
// thread-safe. The object's end leaves the process alone.
class WorkerProcess {
 public:
  struct Command {
    std::string program;
    // Without the program's name.
    std::vector<std::string> arguments;
    // "NAME=value"; the whole environment.
    std::vector<std::string> environment;
    // Gets stdout and stderr, appended. Of Start alone.
    std::string log_path;
  };
  // Open files that become a process's stdin, stdout and stderr; each above 2.
  struct StandardFiles {
    int in = -1;
    int out = -1;
    int error = -1;
  };

  // Starts a process that inherits `lock` at WorkerLock::kInheritedFd and no other open file. Errors: the
  // program cannot be run.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(const Command& command, const WorkerLock& lock);

  // Starts a process that inherits no open file but `files`. Errors as Start.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> StartWith(const Command& command,
                                                                  const StandardFiles& files);

  // Finds a process that is on record. NOT_FOUND: it is gone.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Find(const WorkerRecord::Process& process);

  // Finds the job's worker that holds the lock, one of the job's folder; for what is not on record.
  // NOT_FOUND: nobody holds it. UNAVAILABLE: the holder has not yet written who it is, or is no worker of the
  // job.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> FindByLock(const std::string& lock_path);

  pid_t pid() const { return pid_; }
  // Becomes readable when the process has ended. Owned by this object.
  int pidfd() const { return pidfd_.get(); }

  // Sends a signal to the process and all that it started. No effect where the process has ended.
  void SignalGroup(int signal);

  // How a process ended.
  struct End {
    // Known only to the daemon that started it.
    bool known = false;
    // The exit code, where it exited by itself.
    int exit_code = -1;
    // The signal that ended it; 0 where it exited by itself.
    int signal = 0;
  };
  // Once pidfd() is readable: kills what is left of the group, and reaps the process.
  End Reap();
  // Ends it at once, and waits for that, a few seconds at most.
  void Kill();

 private:
  class SpawnSettings;

  // With file actions set.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Spawn(const Command& command,
                                                              SpawnSettings& settings);

  WorkerProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  const pid_t pid_;
  const UniqueFd pidfd_;
};

// For people, after "The worker ": "was killed by signal 9 (SIGKILL): ...".
std::string DescribeEnd(const WorkerProcess::End& end);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_PROCESS_H_
