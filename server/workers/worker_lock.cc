#include "server/workers/worker_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "server/workers/owner_mode.h"

namespace tandem {
namespace {

absl::Status Lock(int fd, const std::string& path) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot lock ", path, ": another process holds the lock"));
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
}

}  // namespace

absl::StatusOr<WorkerLock> WorkerLock::Acquire(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  TANDEM_RETURN_IF_ERROR(Lock(fd.get(), path));
  return WorkerLock(path, std::move(fd));
}

absl::StatusOr<WorkerLock> WorkerLock::Inherit(int fd, const std::string& path) {
  struct stat inherited, named;
  if (fstat(fd, &inherited) != 0 || stat(path.c_str(), &named) != 0 || inherited.st_dev != named.st_dev ||
      inherited.st_ino != named.st_ino) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use file descriptor ", fd, ": it is not the lock ", path));
  }
  UniqueFd owned(fd);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot keep ", path));
  TANDEM_RETURN_IF_ERROR(Lock(fd, path));
  return WorkerLock(path, std::move(owned));
}

absl::StatusOr<std::optional<WorkerLock::Holder>> WorkerLock::FindHolder(const std::string& path) {
  // The worker could write there, so accept only a regular file, and expect that it may be closed to all.
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd fd(open(path.c_str(), kFlags));
  if (!fd.valid() && errno == EACCES) {
    RestoreOwnerMode(path);
    fd = UniqueFd(open(path.c_str(), kFlags));
  }
  if (!fd.valid() && (errno == ENOENT || errno == ELOOP || errno == EISDIR || errno == ENXIO)) {
    return std::nullopt;
  }
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat file;
  if (fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  // A shared lock, so that two readers at once do not take each other for a worker.
  if (flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("cannot test the lock ", path));
  char text[64] = {};
  if (pread(fd.get(), text, sizeof(text) - 1, 0) < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  }
  Holder holder;
  int pid = 0;
  if (std::sscanf(text, "attempt=%d pid=%d", &holder.attempt, &pid) == 2) holder.pid = pid;
  return holder;
}

absl::Status WorkerLock::SetHolder(const Holder& holder) {
  // The text has a fixed length, so that a reader never sees the end of an older text.
  const std::string text = absl::StrFormat("attempt=%010d pid=%010d\n", holder.attempt, holder.pid);
  if (pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
  }
  return absl::OkStatus();
}

}  // namespace tandem
