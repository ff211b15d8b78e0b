#ifndef TANDEM_SERVER_WORKERS_WORKER_LOCK_H_
#define TANDEM_SERVER_WORKERS_WORKER_LOCK_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/unique_fd.h"

namespace tandem {

// The lock that identifies a live worker: flock(2) on "worker.lock" in the job's folder. The daemon takes the
// lock before it starts the worker, and the worker inherits the lock, which belongs to the open file and not
// to a process. So a worker never runs without the lock: if the lock is free, the job has no worker. The
// kernel frees the lock after the last process with the open file has ended in any way.
//
// The file names the holder: "attempt=N pid=P". The pid is for people. A hijacked worker may write any pid.
class WorkerLock {
 public:
  // The file descriptor of a worker's inherited lock.
  static constexpr int kInheritedFd = 3;

  // The holder of the lock.
  struct Holder {
    int attempt = 0;
    // 0 if not known yet.
    pid_t pid = 0;
  };

  // Takes the lock at `path`, and creates the file. FAILED_PRECONDITION if another process holds the lock.
  static absl::StatusOr<WorkerLock> Acquire(const std::string& path);
  // Takes over the inherited lock at `fd`. FAILED_PRECONDITION if `fd` is no open file of `path`, or if
  // another process holds the lock.
  static absl::StatusOr<WorkerLock> Inherit(int fd, const std::string& path);
  // Returns the holder of the lock at `path`; nullopt if the lock is free or the file does not exist.
  static absl::StatusOr<std::optional<Holder>> FindHolder(const std::string& path);

  // Writes the holder into the file.
  absl::Status SetHolder(const Holder& holder);
  int fd() const { return fd_.get(); }

 private:
  WorkerLock(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_LOCK_H_
