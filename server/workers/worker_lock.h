#ifndef TANDEM_SERVER_WORKERS_WORKER_LOCK_H_
#define TANDEM_SERVER_WORKERS_WORKER_LOCK_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/workers/unique_fd.h"

namespace tandem {

// The lock by which a live worker is known: flock(2) on "worker.lock" in the job's folder. The daemon takes
// it before it starts the worker, and the worker inherits it (the lock belongs to the open file, not to a
// process), so that there is no moment at which a worker runs without it: where the lock is free, no worker
// of the job runs. The kernel frees it when the last process that has the file open is gone, however it
// ended.
//
// The file holds who has the lock: "attempt=N pid=P". The pid is only a handle for signals, and is valid only
// while the lock is held, as the holder wrote it.
class WorkerLock {
 public:
  // The file descriptor by which a worker inherits its lock.
  static constexpr int kInheritedFd = 3;

  // Who holds the lock.
  struct Holder {
    int attempt = 0;
    // 0 where it is not yet known.
    pid_t pid = 0;
  };

  // Takes the lock at `path`, creating the file. FAILED_PRECONDITION where another process has it.
  static absl::StatusOr<WorkerLock> Acquire(const std::string& path);
  // Takes over the inherited lock at `fd`, which must be an open file of `path`. FAILED_PRECONDITION where it
  // is not, or where another process has the lock.
  static absl::StatusOr<WorkerLock> Inherit(int fd, const std::string& path);
  // Who holds the lock at `path`; nothing where it is free or there is no such file.
  static absl::StatusOr<std::optional<Holder>> FindHolder(const std::string& path);

  // Writes who has the lock into the file.
  absl::Status SetHolder(const Holder& holder);
  int fd() const { return fd_.get(); }

 private:
  WorkerLock(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_LOCK_H_
