#include "server/clusters/slurm/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// An open file, closed at the end.
class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  void Open(int fd) {
    Close();
    fd_ = fd;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

// A pipe. The read end does not block.
struct Pipe {
  File read_end, write_end;

  absl::Status Open() {
    std::array<int, 2> ends;
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
    read_end.Open(ends[0]);
    write_end.Open(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return absl::OkStatus();
  }
};

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

  // Returns 0 or an errno.
  int Set(int out, int error_output) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setsigmask(&attributes_, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attributes_, &all);
    if (error == 0) {
      error = posix_spawnattr_setflags(&attributes_,
                                       POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    if (error == 0) error = posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions_, out, 1);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions_, error_output, 2);
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
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

absl::StatusOr<std::string> FindProgram(const Command& command) {
  if (absl::StrContains(command.program, '/')) return command.program;
  for (const absl::string_view folder : absl::StrSplit(command.path, ':', absl::SkipEmpty())) {
    std::string file = absl::StrCat(folder, "/", command.program);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::NotFoundError(
      absl::StrCat("cannot run ", command.program, ": no such program in PATH=", command.path));
}

// A started program. The destructor kills it and its children, and reaps it.
class Program {
 public:
  explicit Program(pid_t pid) : pid_(pid), pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ~Program() { Reap(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Becomes readable at the program's end. -1 if the kernel has none.
  int pidfd() const { return pidfd_.fd(); }
  // Kills the program and its children. Returns the exit code, or 128 plus the signal.
  int Reap() {
    if (pid_ <= 0) return exit_code_;
    siginfo_t info = {};
    // The process group keeps its number until the program is reaped.
    const bool has_ended = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                           info.si_pid == pid_;
    kill(-pid_, SIGKILL);
    if (!has_ended) kill(pid_, SIGKILL);
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) continue;
    exit_code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    pid_ = 0;
    return exit_code_;
  }

 private:
  pid_t pid_;
  const File pidfd_;
  int exit_code_ = 0;
};

// Appends the bytes that can be read now. Closes the file at its end.
void Read(File& file, std::string& text, size_t most) {
  std::array<char, 16384> buffer;
  while (file.fd() >= 0 && text.size() <= most) {
    const ssize_t count = read(file.fd(), buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    file.Close();
  }
}

// Reads the output until the program has ended.
absl::Status Collect(const Command& command, int pidfd, File& out, File& error_output,
                     CommandResult& result) {
  // A change of the wall clock changes no time limit.
  const auto start = std::chrono::steady_clock::now();
  for (bool has_ended = false; !has_ended;) {
    const absl::Duration left =
        command.time_limit - absl::FromChrono(std::chrono::steady_clock::now() - start);
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("cannot run ", command.program, ": no end after ",
                                                      absl::FormatDuration(command.time_limit)));
    }
    std::array<pollfd, 3> files = {
        {{pidfd, POLLIN, 0}, {out.fd(), POLLIN, 0}, {error_output.fd(), POLLIN, 0}}};
    const absl::Duration wait = std::min(absl::Ceil(left, absl::Milliseconds(1)), absl::Hours(1));
    if (poll(files.data(), files.size(), static_cast<int>(absl::ToInt64Milliseconds(wait))) < 0 &&
        errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("cannot watch ", command.program, ": poll failed"));
    }
    // The last output is read after the end is known. A child that keeps the pipe open delays nothing.
    has_ended = (files[0].revents & POLLIN) != 0;
    Read(out, result.standard_output, command.most_output);
    Read(error_output, result.standard_error, command.most_output);
    if (std::max(result.standard_output.size(), result.standard_error.size()) > command.most_output) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot read the output of ", command.program,
                                                       ": it is longer than ", command.most_output,
                                                       " bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandResult> RunCommand(const Command& command) {
  TANDEM_ASSIGN_OR_RETURN(const std::string program, FindProgram(command));
  Pipe out, error_output;
  TANDEM_RETURN_IF_ERROR(out.Open());
  TANDEM_RETURN_IF_ERROR(error_output.Open());
  SpawnSettings settings;
  int error = settings.Set(out.write_end.fd(), error_output.write_end.fd());
  pid_t pid = 0;
  if (error == 0) {
    std::vector<std::string> arguments = command.arguments;
    arguments.insert(arguments.begin(), command.program);
    std::vector<std::string> environment = command.environment;
    error = posix_spawn(&pid, program.c_str(), settings.actions(), settings.attributes(),
                        Pointers(arguments).data(), Pointers(environment).data());
  }
  if (error == ENOENT) {
    return absl::NotFoundError(absl::StrCat("cannot run ", program, ": no such program or interpreter"));
  }
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot run ", program, ": ", absl::ErrnoToStatus(error, "start").message()));
  }
  out.write_end.Close();
  error_output.write_end.Close();
  Program running(pid);
  if (running.pidfd() < 0) {
    return absl::UnavailableError(absl::StrCat("cannot watch ", program, ": Linux 5.4 or newer is needed"));
  }
  CommandResult result;
  TANDEM_RETURN_IF_ERROR(Collect(command, running.pidfd(), out.read_end, error_output.read_end, result));
  result.exit_code = running.Reap();
  return result;
}

}  // namespace tandem
