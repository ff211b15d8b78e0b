#ifndef TANDEM_SERVER_CLUSTERS_SSH_SSH_COMMAND_CLIENT_H_
#define TANDEM_SERVER_CLUSTERS_SSH_SSH_COMMAND_CLIENT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/clusters/ssh/host.h"
#include "server/clusters/ssh/host_client.h"

namespace tandem {

// Calls hosts by the program ssh, as this process's user and with the user's configuration (~/.ssh/config).
// Each call is one connection, which runs a POSIX shell script. ssh never asks: a host's key must be known,
// and the user's key must need no passphrase or be in an agent. Thread-safe.
//
// A host needs sh, nproc, grep, sed, tr, sort and setsid, and Linux's /proc. A task's processes have its
// description in their environment (TANDEM_TASK), so nothing else is kept on a host.
class SshCommandClient final : public HostClient {
 public:
  struct Options {
    // Where ssh is found. Empty: this process's PATH.
    std::string path;
    absl::Duration connect_limit = absl::Seconds(5);
    // Of a whole call.
    absl::Duration time_limit = absl::Seconds(20);
  };
  explicit SshCommandClient(Options options);

  absl::StatusOr<Host> Look(const std::string& host) override;
  absl::Status Start(const std::string& host, const HostStart& start) override;
  absl::Status Stop(const std::string& host, const std::string& job_id, int attempt, HostStop how) override;

  // Returns whether the host has the paths. FAILED_PRECONDITION names those that are missing.
  absl::Status CheckPaths(const std::string& host, const std::vector<std::string>& paths);

 private:
  // Runs a script on the host. Returns its output. UNAVAILABLE: ssh could not reach the host, or the time
  // limit passed. INTERNAL: the script exited with another code than 0; the message has its output.
  absl::StatusOr<std::string> Run(const std::string& host, const std::string& script);

  const Options options_;
};

// Returns a task's description on a host: "JOB ATTEMPT RANK/WORKERS HOST CORES GPUS".
std::string DescribeTask(const HostTask& task, const std::string& host);

// Reads the output of Look's script. Ignores tasks of another host. INTERNAL if the text has another form.
absl::StatusOr<Host> ParseLook(const std::string& host, absl::string_view output);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SSH_SSH_COMMAND_CLIENT_H_
