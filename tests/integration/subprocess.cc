#include "tests/integration/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tandem::testing {

absl::StatusOr<std::unique_ptr<Subprocess>> Subprocess::Start(const Options& options) {
  std::map<std::string, std::string> environment = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      // No program can write into this home.
      {"HOME", "/dev/null"},
      {"LC_ALL", "C.UTF-8"},
      {"OMP_WAIT_POLICY", "passive"},
  };
  for (const auto& [name, value] : options.environment) environment[name] = value;
  std::vector<std::string> assignments;
  for (const auto& [name, value] : environment) assignments.push_back(absl::StrCat(name, "=", value));

  std::vector<char*> argv;
  for (const std::string& argument : options.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& assignment : assignments) envp.push_back(const_cast<char*>(assignment.c_str()));
  envp.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND;
  posix_spawn_file_actions_addopen(&files, 0, options.stdin_path.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, options.stdout_path.c_str(), kAppend, 0600);
  posix_spawn_file_actions_addopen(&files, 2, options.stderr_path.c_str(), kAppend, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Signals that the test ignores or blocks are as usual for the program.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return absl::NotFoundError(absl::StrCat("cannot start ", argv[0], ": ", strerror(error)));
  const int pid_fd = syscall(SYS_pidfd_open, pid, 0);
  return std::unique_ptr<Subprocess>(new Subprocess(pid, pid_fd));
}

Subprocess::~Subprocess() {
  Kill();
  // It led a session, and so a group of the same number.
  kill(-pid_, SIGKILL);
  close(pid_fd_);
}

std::optional<int> Subprocess::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!exit_code_.has_value()) {
    int status = 0;
    const pid_t result = waitpid(pid_, &status, WNOHANG);
    if (result == pid_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    pollfd ready = {pid_fd_, POLLIN, 0};
    poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(std::min(left, absl::Minutes(1)))) + 1);
  }
  return exit_code_;
}

void Subprocess::Signal(int signal) {
  if (IsRunning()) kill(pid_, signal);
}

void Subprocess::Kill() {
  if (exit_code_.has_value()) return;
  kill(pid_, SIGKILL);
  Wait(absl::InfiniteDuration());
}

}  // namespace tandem::testing
