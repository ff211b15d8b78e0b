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

// The real daemon on a folder of a test, on loopback. Not thread-safe.
class DaemonProcess {
 public:
  struct Options {
    // Its state folder. Required.
    std::string state_folder;
    int cpu_devices = 2;
    // Added to the command line, such as {"--data-folder", "/data"}.
    std::vector<std::string> extra_arguments = {};
    // Added to its environment, which hides all GPUs.
    std::map<std::string, std::string> environment = {};
  };

  explicit DaemonProcess(Options options) : options_(std::move(options)) {}

  // Starts it, the first time on a free port and then always on that one, without waiting for it.
  absl::Status Launch();
  // Waits until it serves. Its last words where it ended instead.
  absl::Status WaitUntilReady(absl::Duration timeout = absl::Seconds(60));
  // Both.
  absl::Status Start();

  // SIGKILL, and waits for its end. Workers go on.
  void Kill();
  // SIGTERM, and waits. Its exit code; nothing where it did not end in time.
  std::optional<int> Terminate(absl::Duration timeout = absl::Seconds(30));
  // Waits for its end without asking for it.
  std::optional<int> Wait(absl::Duration timeout) { return process_->Wait(timeout); }
  bool IsRunning() { return process_ != nullptr && process_->IsRunning(); }

  // "127.0.0.1:12345"; known once it has been ready.
  const std::string& address() const { return address_; }
  const std::string& state_folder() const { return options_.state_folder; }
  std::string TokenPath() const { return options_.state_folder + "/token"; }
  std::string Token() const;
  std::string DatabasePath() const { return options_.state_folder + "/tandem.db"; }
  // The folder of a job, "jobs/<id>".
  std::string JobFolder(const std::string& job) const { return options_.state_folder + "/" + job; }
  // What it wrote to stdout and stderr since the first start.
  std::string Log() const;
  pid_t pid() const { return process_->pid(); }

  // A new channel; each has connections of its own.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  // Puts a token (empty: the daemon's own) and a deadline into a call's context.
  void Prepare(grpc::ClientContext& context, absl::Duration timeout = absl::Seconds(60),
               const std::string& token = "") const;

  // Workers of this state folder that run now.
  std::vector<pid_t> Workers() const;
  // Every process of the three programs that has to do with this state folder.
  std::vector<pid_t> Processes() const;

 private:
  std::string LogPath() const { return options_.state_folder + ".log"; }

  const Options options_;
  std::unique_ptr<Subprocess> process_;
  std::string address_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_DAEMON_PROCESS_H_
