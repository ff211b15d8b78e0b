#include "server/workers/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "engine/base/unique_fd.h"
#include "server/workers/exit_codes.h"

namespace tandem {
namespace {

// Returns true if one of the process's threads has the file open. Each thread may have its own open files.
bool HasOpen(pid_t pid, const struct stat& file) {
  std::error_code error;
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    std::error_code closed;
    for (std::filesystem::directory_iterator entry(task->path() / "fd", closed); !closed && entry != end;
         entry.increment(closed)) {
      struct stat open;
      if (stat(entry->path().c_str(), &open) == 0 && open.st_dev == file.st_dev &&
          open.st_ino == file.st_ino) {
        return true;
      }
    }
  }
  return false;
}

// Returns true if the process was started as a worker of the job with this folder. Other processes may have
// the job's files open.
bool IsWorkerOf(pid_t pid, const std::string& job_folder) {
  const std::string text = ContentOrEmpty(absl::StrCat("/proc/", pid, "/cmdline"));
  const std::vector<absl::string_view> arguments = absl::StrSplit(text, '\0');
  const auto launch = std::find(arguments.begin(), arguments.end(), "--launch");
  const std::string attempts =
      absl::StrCat("/", std::filesystem::path(job_folder).filename().string(), "/attempt-");
  return launch != arguments.end() && launch + 1 != arguments.end() &&
         absl::StrContains(*(launch + 1), attempts);
}

bool IsHolder(pid_t pid, const std::string& job_folder, const struct stat& lock) {
  return pid != getpid() && IsWorkerOf(pid, job_folder) && HasOpen(pid, lock);
}

// Returns 0 if none is found.
pid_t FindWorkerWith(const std::string& job_folder, const struct stat& lock) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &pid) && IsHolder(pid, job_folder, lock)) {
      return pid;
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> StartWorker(const ProcessGroup::Command& command,
                                                          const std::string& log_path,
                                                          const WorkerLock& lock) {
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.valid()) return absl::ErrnoToStatus(errno, "cannot start a worker: cannot open /dev/null");
  // An earlier worker may have left a link or a pipe in the log's place. A pipe would block open().
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const UniqueFd log(open(log_path.c_str(), kFlags, 0600));
  if (!log.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot start a worker: cannot open its log ", log_path));
  }
  struct stat file;
  if (fstat(log.get(), &file) != 0 || !S_ISREG(file.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start a worker: its log ", log_path, " is no regular file; remove it"));
  }
  static_assert(WorkerLock::kInheritedFd == 3);
  return ProcessGroup::Start(command, {nothing.get(), log.get(), log.get(), lock.fd()});
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> FindWorker(const WorkerRecord::Process& process) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<ProcessGroup> found, ProcessGroup::Open(process.pid));
  // The current owner of the number. While the pidfd shows a live process, the number cannot change its
  // owner.
  const uint64_t start = StartOfProcess(process.pid);
  if (found->HasEnded() || (start != 0 && start != process.start)) {
    return absl::NotFoundError(absl::StrCat("process ", process.pid, " has ended"));
  }
  if (start == 0) {
    return absl::UnavailableError(absl::StrCat("cannot read the start time of process ", process.pid));
  }
  return found;
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> FindWorkerByLock(const std::string& lock_path) {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<WorkerLock::Holder> holder, WorkerLock::FindHolder(lock_path));
  if (!holder.has_value()) return absl::NotFoundError(absl::StrCat("nobody holds ", lock_path));
  struct stat file;
  if (lstat(lock_path.c_str(), &file) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", lock_path));
  }
  const std::string job_folder = std::filesystem::path(lock_path).parent_path().string();
  // A hijacked worker may have written any pid into the lock.
  const pid_t pid = FindWorkerWith(job_folder, file);
  if (pid > 0) {
    absl::StatusOr<std::unique_ptr<ProcessGroup>> found = ProcessGroup::Open(pid);
    // If the pid belongs to the holder after the pidfd was opened, the pidfd is the holder's.
    if (found.ok() && IsHolder(pid, job_folder, file)) return found;
  }
  return absl::UnavailableError(absl::StrCat("cannot tell yet which process holds ", lock_path));
}

std::string DescribeEnd(const ProcessGroup::End& end) {
  if (!end.known) return "ended, and nobody knows how, because an earlier daemon had started it";
  if (end.signal != 0) {
    const char* name = sigabbrev_np(end.signal);
    std::string text =
        absl::StrCat("was killed by signal ", end.signal, " (SIG", name != nullptr ? name : "?", ")");
    if (end.signal == SIGKILL) text += ": by a person, or by the kernel because memory ran out (see dmesg)";
    return text;
  }
  std::string text = absl::StrCat("exited with code ", end.exit_code);
  switch (end.exit_code) {
    case kWorkerBadLaunch:
      return text + ": it could not use its command line or launch file";
    case kWorkerLockHeld:
      return text + ": another process held the lock of the job's folder";
    case kWorkerSpoolFailed:
      return text + ": it could not write its event spool, perhaps because the disk is full";
    case kWorkerDismissed:
      return text + ": the daemon had dismissed it";
    case kWorkerDeviceFailed:
      return text + ": CUDA failed on its GPU";
    case kWorkerNotConfined:
      return text + ": it could not be confined; its log says why";
    case kWorkerGroupFailed:
      return text + ": training could not continue";
    default:
      return text;
  }
}

}  // namespace tandem
