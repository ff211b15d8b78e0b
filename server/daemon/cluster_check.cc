#include "server/daemon/cluster_check.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "engine/base/env.h"
#include "server/auth/listen_policy.h"
#include "server/clusters/slurm/slurm_command_client.h"
#include "server/daemon/cluster_options.h"
#include "server/rpc/rpc_server.h"

namespace tandem {
namespace {

using Verdict = Check::Verdict;

// A person waits for the answer.
constexpr absl::Duration kSlurmTimeLimit = absl::Seconds(10);

// The same conditions as in StateFolder::ShareThrough.
Check CheckSharedFolder(const DaemonOptions& options) {
  Check check{Verdict::kProblem, absl::StrCat("shared folder ", options.shared_folder), ""};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(options.shared_folder, error);
  if (error) {
    check.message = absl::StrCat("user ", geteuid(), " cannot reach it: ", error.message(),
                                 "; it must exist, on a file system of all nodes");
    return check;
  }
  if (!std::filesystem::is_directory(folder, error)) {
    check.message = "is not a folder; name a folder on a file system of all nodes";
    return check;
  }
  if (access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    check.message = absl::StrCat("user ", geteuid(), " may not write to it: ", strerror(errno),
                                 "; give it to the user that runs tandemd");
    return check;
  }
  const absl::StatusOr<std::string> owner = Env::Real()->ReadFile((folder / "tandem-daemon").string());
  if (!owner.ok() && !absl::IsNotFound(owner.status())) {
    check.message = std::string(owner.status().message());
    return check;
  }
  const std::string state_folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(options.state_folder, error), error)
          .string();
  if (owner.ok() && absl::StripAsciiWhitespace(*owner) != state_folder) {
    check.message = absl::StrCat("the daemon of the state folder ", absl::StripAsciiWhitespace(*owner),
                                 " uses it; use another folder, or remove ", folder.string(),
                                 "/tandem-daemon if that daemon is gone");
    return check;
  }
  check.verdict = Verdict::kFine;
  check.message = "writable; all nodes must have it at this path";
  return check;
}

Check CheckWorkerAddress(const DaemonOptions& options, bool is_running) {
  Check check{Verdict::kProblem, absl::StrCat("--worker-listen ", options.worker_listen), ""};
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options.worker_listen);
  if (!address.ok()) {
    check.message = std::string(address.status().message());
    return check;
  }
  const absl::Status free = RpcServer::CheckAddress(*address, "--worker-listen");
  // The address of a running daemon is unknown.
  if (free.ok() || is_running) {
    check.verdict = Verdict::kFine;
    check.message = free.ok() ? "free; all nodes must reach it" : "in use, probably by the running daemon";
    return check;
  }
  check.message = std::string(absl::StripSuffix(free.message(), ", or port 0 for any free port"));
  return check;
}

Check CheckSlurm() {
  Check check{Verdict::kProblem, "Slurm", ""};
  SlurmCommandClient::Options options;
  options.time_limit = kSlurmTimeLimit;
  SlurmCommandClient slurm(options);
  if (const absl::Status installed = slurm.CheckInstalled(); !installed.ok()) {
    check.message = std::string(installed.message());
    return check;
  }
  const absl::StatusOr<std::vector<SlurmPartition>> partitions = slurm.Partitions();
  if (!partitions.ok()) {
    // Slurm may be back when the daemon starts.
    check.verdict = Verdict::kWarning;
    check.message = absl::StrCat(partitions.status().message(), "; jobs wait until `sinfo` answers");
    return check;
  }
  check.verdict = Verdict::kFine;
  check.message = absl::StrCat("answers; partitions: ", partitions->size());
  return check;
}

}  // namespace

std::vector<Check> CheckCluster(const DaemonOptions& options, bool is_running) {
  if (options.shared_folder.empty() && options.worker_listen.empty()) return {};
  if (const absl::Status status = CheckClusterOptions(options); !status.ok()) {
    return {{Verdict::kProblem, "cluster", std::string(status.message())}};
  }
  return {CheckSharedFolder(options), CheckWorkerAddress(options, is_running), CheckSlurm()};
}

}  // namespace tandem
