#ifndef TANDEM_ENGINE_BASE_PROCESS_GROUP_H_
#define TANDEM_ENGINE_BASE_PROCESS_GROUP_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/unique_fd.h"

namespace tandem {

// A process and its children. The process leads its own session and process group. Not thread-safe.
// Destroying the object does not end the process.
class ProcessGroup {
 public:
  struct Command {
    // A path.
    std::string program;
    // Without the program's name.
    std::vector<std::string> arguments;
    // The whole environment, as "NAME=value".
    std::vector<std::string> environment;
  };

  // The end of a process.
  struct End {
    // True only in the process that started it.
    bool known = false;
    // The exit code, if it exited by itself.
    int exit_code = -1;
    // The signal that ended it; 0 if it exited by itself.
    int signal = 0;
  };

  // Starts a process in a session of its own. files[i] becomes its file i. It inherits no other file, and no
  // blocked or ignored signal. NOT_FOUND: no such program or interpreter. Other errors: the program cannot be
  // run, or the kernel has no pidfds.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Start(const Command& command,
                                                             absl::Span<const int> files);

  // Opens a running process, which another process may have started. The pid may belong to a later process:
  // the caller must check the process. NOT_FOUND: no process has this pid.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Open(pid_t pid);

  pid_t pid() const { return pid_; }
  // Becomes readable when the process has ended. Owned by this object.
  int pidfd() const { return pidfd_.get(); }
  bool HasEnded() const;

  // Sends a signal to the process and its children. Does nothing if the process has ended.
  void SignalGroup(int signal);

  // Kills the rest of the group, and reaps the process. Call when pidfd() is readable.
  End Reap();

  // Kills the process and its children, and waits for the process's end. Reaps the process if it ends within
  // the limit. A killed process ends at once unless it waits for a disk.
  End Kill(absl::Duration limit = absl::Seconds(5));

 private:
  ProcessGroup(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  const pid_t pid_;
  const UniqueFd pidfd_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_PROCESS_GROUP_H_
