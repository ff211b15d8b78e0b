#include "engine/base/process_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// Owns the arguments of posix_spawn.
class SpawnSettings {
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

  // files[i], at least files.size() as a number, becomes file i. Returns 0 or an errno.
  int Set(const std::vector<UniqueFd>& files) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setsigmask(&attributes_, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attributes_, &all);
    if (error == 0) {
      error = posix_spawnattr_setflags(&attributes_,
                                       POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    const int count = static_cast<int>(files.size());
    for (int i = 0; error == 0 && i < count; ++i) {
      error = posix_spawn_file_actions_adddup2(&actions_, files[i].get(), i);
    }
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions_, count);
    return error;
  }

  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// <sys/pidfd.h> lacks extern "C" in Debian 12's glibc.
UniqueFd OpenPidfd(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

int SendSignal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Start(const Command& command,
                                                                  absl::Span<const int> files) {
  const std::string what_failed = absl::StrCat("cannot start ", command.program);
  // The copies' numbers are above those in the new process, so a copy replaces no file that is still needed.
  std::vector<UniqueFd> copies;
  for (const int file : files) {
    copies.emplace_back(fcntl(file, F_DUPFD_CLOEXEC, static_cast<int>(files.size())));
    if (!copies.back().valid())
      return absl::ErrnoToStatus(errno, absl::StrCat(what_failed, ": cannot pass a file"));
  }
  SpawnSettings settings;
  int error = settings.Set(copies);
  pid_t pid = 0;
  if (error == 0) {
    std::vector<std::string> arguments = command.arguments;
    arguments.insert(arguments.begin(), command.program);
    std::vector<std::string> environment = command.environment;
    error = posix_spawn(&pid, command.program.c_str(), settings.actions(), settings.attributes(),
                        Pointers(arguments).data(), Pointers(environment).data());
  }
  if (error != 0) return absl::ErrnoToStatus(error, what_failed);
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd.valid()) {
    const int pidfd_error = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(pidfd_error, "cannot watch processes by pidfd: Linux 5.4 or newer is needed");
  }
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(pid, std::move(pidfd)));
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Open(pid_t pid) {
  UniqueFd pidfd = OpenPidfd(pid);
  if (pidfd.valid()) return std::unique_ptr<ProcessGroup>(new ProcessGroup(pid, std::move(pidfd)));
  // EINVAL or ENOENT, depending on the kernel: the number now belongs to a thread or only to a session.
  if (errno == ESRCH || errno == EINVAL || errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch process ", pid));
}

bool ProcessGroup::HasEnded() const {
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) != 0;
}

void ProcessGroup::SignalGroup(int signal) {
  if (HasEnded()) return;
  // Its group has its number, unless somebody started it by hand.
  if (getpgid(pid_) != pid_ || kill(-pid_, signal) != 0) SendSignal(pidfd_.get(), signal);
}

ProcessGroup::End ProcessGroup::Reap() {
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

ProcessGroup::End ProcessGroup::Kill(absl::Duration limit) {
  SignalGroup(SIGKILL);
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  const int milliseconds =
      limit == absl::InfiniteDuration() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(limit));
  int ready = 0;
  do {
    ready = poll(&ended, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready == 1 ? Reap() : End();
}

}  // namespace tandem
