#include "server/workers/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "server/workers/exit_codes.h"

namespace tandem {
namespace {

// A killed process ends at once unless it waits for a disk.
constexpr int kKillMilliseconds = 5000;
constexpr char kCannotPrepare[] = "cannot prepare the start of a worker";

// <sys/pidfd.h> lacks extern "C" in Debian 12's glibc.
UniqueFd OpenPidfd(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

int SendSignal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

bool HasEnded(int pidfd) {
  pollfd ended = {pidfd, POLLIN, 0};
  return poll(&ended, 1, 0) != 0;
}

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
  std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
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

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

// Owns the arguments of posix_spawn.
class WorkerProcess::SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawnattr_t* attributes() { return &attributes_; }
  posix_spawn_file_actions_t* actions() { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const Command& command,
                                                                    const WorkerLock& lock) {
  // Avoids the descriptors that the new process uses.
  const UniqueFd lock_fd(fcntl(lock.fd(), F_DUPFD_CLOEXEC, WorkerLock::kInheritedFd + 1));
  if (!lock_fd.valid()) return absl::ErrnoToStatus(errno, "cannot pass the worker's lock on");

  SpawnSettings settings;
  posix_spawn_file_actions_t* actions = settings.actions();
  int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (error == 0) {
    error = posix_spawn_file_actions_addopen(actions, 1, command.log_path.c_str(),
                                             O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, 1, 2);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, lock_fd.get(), WorkerLock::kInheritedFd);
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(actions, WorkerLock::kInheritedFd + 1);
  if (error != 0) return absl::ErrnoToStatus(error, kCannotPrepare);
  return Spawn(command, settings);
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::StartWith(const Command& command,
                                                                        const StandardFiles& files) {
  SpawnSettings settings;
  posix_spawn_file_actions_t* actions = settings.actions();
  int error = posix_spawn_file_actions_adddup2(actions, files.in, 0);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, files.out, 1);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, files.error, 2);
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(actions, 3);
  if (error != 0) return absl::ErrnoToStatus(error, kCannotPrepare);
  return Spawn(command, settings);
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Spawn(const Command& command,
                                                                    SpawnSettings& settings) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_t* attributes = settings.attributes();
  int error = posix_spawnattr_setsigmask(attributes, &none);
  if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &all);
  if (error == 0) {
    error = posix_spawnattr_setflags(attributes,
                                     POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  if (error != 0) return absl::ErrnoToStatus(error, kCannotPrepare);

  std::vector<std::string> arguments = command.arguments;
  arguments.insert(arguments.begin(), command.program);
  std::vector<std::string> environment = command.environment;
  pid_t pid = 0;
  error = posix_spawn(&pid, command.program.c_str(), settings.actions(), attributes,
                      Pointers(arguments).data(), Pointers(environment).data());
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", command.program));
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd.valid()) {
    const int pidfd_error = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(pidfd_error, "cannot watch processes by pidfd: Linux 5.4 or newer is needed");
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, std::move(pidfd)));
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Find(const WorkerRecord::Process& process) {
  UniqueFd pidfd = OpenPidfd(process.pid);
  // EINVAL or ENOENT, depending on the kernel: the number now belongs to a thread or only to a session.
  if (!pidfd.valid() && errno != ESRCH && errno != EINVAL && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch process ", process.pid));
  }
  // The current owner of the number. While the pidfd shows a live process, the number cannot change its
  // owner.
  const uint64_t start = pidfd.valid() ? StartOfProcess(process.pid) : 0;
  if (!pidfd.valid() || HasEnded(pidfd.get()) || (start != 0 && start != process.start)) {
    return absl::NotFoundError(absl::StrCat("process ", process.pid, " has ended"));
  }
  if (start == 0) {
    return absl::UnavailableError(absl::StrCat("cannot read the start time of process ", process.pid));
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(process.pid, std::move(pidfd)));
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::FindByLock(const std::string& lock_path) {
  TANDEM_ASSIGN_OR_RETURN(const std::optional<WorkerLock::Holder> holder, WorkerLock::FindHolder(lock_path));
  if (!holder.has_value()) return absl::NotFoundError(absl::StrCat("nobody holds ", lock_path));
  struct stat file;
  if (lstat(lock_path.c_str(), &file) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", lock_path));
  }
  const std::string job_folder = std::filesystem::path(lock_path).parent_path().string();
  // A hijacked worker may have written any pid into the lock.
  const pid_t pid = FindWorkerWith(job_folder, file);
  UniqueFd pidfd = pid > 0 ? OpenPidfd(pid) : UniqueFd();
  // If the pid belongs to the holder after the pidfd was opened, the pidfd is the holder's.
  if (!pidfd.valid() || !IsHolder(pid, job_folder, file)) {
    return absl::UnavailableError(absl::StrCat("cannot tell yet which process holds ", lock_path));
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, std::move(pidfd)));
}

void WorkerProcess::SignalGroup(int signal) {
  if (HasEnded(pidfd_.get())) return;
  // Its group has its number, unless somebody started it by hand.
  if (getpgid(pid_) != pid_ || kill(-pid_, signal) != 0) SendSignal(pidfd_.get(), signal);
}

WorkerProcess::End WorkerProcess::Reap() {
  End end;
  siginfo_t info = {};
  const id_t id = static_cast<id_t>(pidfd_.get());
  // The number stays its own until it is reaped, so kill the group first.
  if (waitid(static_cast<idtype_t>(P_PIDFD), id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_) {
    end.known = true;
    if (info.si_code == CLD_EXITED) {
      end.exit_code = info.si_status;
    } else {
      end.signal = info.si_status;
    }
  }
  // Another process already reaped an adopted child. While the group lives, no new process gets its number.
  // If a process has the number, the group is gone and the number is a stranger's.
  const bool is_ours =
      end.known || SendSignal(pidfd_.get(), 0) == 0 || (kill(pid_, 0) != 0 && errno == ESRCH);
  if (is_ours) kill(-pid_, SIGKILL);
  if (end.known) waitid(static_cast<idtype_t>(P_PIDFD), id, &info, WEXITED | WNOHANG);
  return end;
}

void WorkerProcess::Kill() {
  SignalGroup(SIGKILL);
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  if (poll(&ended, 1, kKillMilliseconds) == 1) Reap();
}

std::string DescribeEnd(const WorkerProcess::End& end) {
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
