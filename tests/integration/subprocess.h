#ifndef TANDEM_TESTS_INTEGRATION_SUBPROCESS_H_
#define TANDEM_TESTS_INTEGRATION_SUBPROCESS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem::testing {

// A program that a test started, in its own session. The destructor kills its whole process group. Not
// thread-safe.
class Subprocess {
 public:
  struct Options {
    // The program and its arguments.
    std::vector<std::string> arguments;
    // Additions to a small environment: PATH, HOME (a folder that does not exist), LC_ALL=C and
    // OMP_WAIT_POLICY.
    std::map<std::string, std::string> environment = {};
    // Files to which the output is appended. Both may be the same file. Required.
    std::string stdout_path;
    std::string stderr_path;
    // The file of standard input.
    std::string stdin_path = "/dev/null";
  };

  static absl::StatusOr<std::unique_ptr<Subprocess>> Start(const Options& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }

  // Waits for its end. Returns the exit code, or 128 plus the signal that ended it, or nothing if it still
  // runs.
  std::optional<int> Wait(absl::Duration timeout);
  bool IsRunning() { return !Wait(absl::ZeroDuration()).has_value(); }

  // Sends a signal to the process only. Does nothing if it has ended.
  void Signal(int signal);
  // Sends SIGKILL to the process only, and waits for its end.
  void Kill();

 private:
  explicit Subprocess(pid_t pid, int pid_fd) : pid_(pid), pid_fd_(pid_fd) {}

  const pid_t pid_;
  const int pid_fd_;
  std::optional<int> exit_code_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_SUBPROCESS_H_
