#ifndef TANDEM_TESTS_INTEGRATION_DAEMON_PROCESS_H_
#define TANDEM_TESTS_INTEGRATION_DAEMON_PROCESS_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/subprocess.h"

namespace tandem::testing {

// A real daemon on a test's folder, on loopback. Not thread-safe.
class DaemonProcess {
 public:
  struct Options {
    // The state folder. Required.
    std::string state_folder;
    int cpu_devices = 2;
    // Additional arguments, such as {"--data-folder", "/data"}.
    std::vector<std::string> extra_arguments = {};
    // Additions to the environment, which hides all GPUs.
    std::map<std::string, std::string> environment = {};
  };

  explicit DaemonProcess(Options options) : options_(std::move(options)) {}

  // Starts the daemon without waiting. The first start takes a free port, and later starts the same port.
  absl::Status Launch();
  // Waits until the daemon serves. If it ends instead, returns its last output as an error.
  absl::Status WaitUntilReady(absl::Duration timeout = absl::Seconds(60));
  // Launch and WaitUntilReady.
  absl::Status Start();

  // Sends SIGKILL, and waits for the end. Workers continue.
  void Kill();
  // Sends SIGTERM, and waits. Returns the exit code, or nothing at the deadline.
  std::optional<int> Terminate(absl::Duration timeout = absl::Seconds(30));
  // Waits for the end without a signal.
  std::optional<int> Wait(absl::Duration timeout) { return process_->Wait(timeout); }
  bool IsRunning() { return process_ != nullptr && process_->IsRunning(); }

  // Returns "127.0.0.1:12345". Known once the daemon has been ready.
  const std::string& address() const { return address_; }
  const std::string& state_folder() const { return options_.state_folder; }
  std::string TokenPath() const { return options_.state_folder + "/token"; }
  std::string Token() const;
  std::string DatabasePath() const { return options_.state_folder + "/tandem.db"; }
  // Returns the folder of a job, "jobs/<id>".
  std::string JobFolder(const std::string& job) const { return options_.state_folder + "/" + job; }
  // Returns stdout and stderr since the first start.
  std::string Log() const;
  pid_t pid() const { return process_->pid(); }

  // Returns a new channel with its own connection.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  // Puts a token (empty: the daemon's own) and a deadline into a call's context.
  void Prepare(grpc::ClientContext& context, absl::Duration timeout = absl::Seconds(60),
               const std::string& token = "") const;

  // Returns the running workers of this state folder.
  std::vector<pid_t> Workers() const;
  // Returns all processes of the three programs that use this state folder.
  std::vector<pid_t> Processes() const;

 private:
  std::string LogPath() const { return options_.state_folder + ".log"; }

  const Options options_;
  std::unique_ptr<Subprocess> process_;
  std::string address_;
};

struct DaemonRun {
  std::optional<int> exit_code;
  std::string output;
};

// Runs the daemon with these arguments alone until it ends, or kills it after a minute: then there is no exit
// code.
DaemonRun RunDaemon(const ScratchFolder& scratch, std::vector<std::string> arguments);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_DAEMON_PROCESS_H_
