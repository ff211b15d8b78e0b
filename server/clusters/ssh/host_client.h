#ifndef TANDEM_SERVER_CLUSTERS_SSH_HOST_CLIENT_H_
#define TANDEM_SERVER_CLUSTERS_SSH_HOST_CLIENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/clusters/ssh/host.h"

namespace tandem {

// The tasks of an attempt to start on a host.
struct HostStart {
  // TaskScript. The host gets it with the call: a worker could change a file.
  std::string script;
  // Absolute, the same on all hosts.
  std::string attempt_folder;
  // In the order of their ranks.
  std::vector<HostTask> tasks;
};

// How a task is ended.
enum class HostStop {
  kTerminate,  // SIGTERM to the worker
  kKill,       // SIGKILL to all processes of the task
};

// Calls to hosts. Each call blocks for up to the client's time limit. Thread-safe.
//
// UNAVAILABLE from any method: the host gave no answer. The message names the host.
class HostClient {
 public:
  virtual ~HostClient() = default;

  // Returns the host's size and the tasks of this user that run on it.
  virtual absl::StatusOr<Host> Look(const std::string& host) = 0;

  // Starts tasks, which continue after the call and after the daemon. UNAVAILABLE: the tasks may have
  // started, or may start soon. Any other error: none has started.
  virtual absl::Status Start(const std::string& host, const HostStart& start) = 0;

  // Signals the tasks of an attempt on the host. OK if none runs.
  virtual absl::Status Stop(const std::string& host, const std::string& job_id, int attempt,
                            HostStop how) = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SSH_HOST_CLIENT_H_
