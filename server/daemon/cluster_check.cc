#include "server/daemon/cluster_check.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "server/auth/listen_policy.h"
#include "server/clusters/slurm/slurm_command_client.h"
#include "server/rpc/rpc_server.h"
#include "server/store/state_folder.h"

namespace tandem {
namespace {

using Verdict = Check::Verdict;

// A person waits for the answer.
constexpr absl::Duration kSlurmTimeLimit = absl::Seconds(10);

Check CheckSharedFolder(const DaemonOptions& options) {
  const absl::Status status = StateFolder::CheckShare(options.state_folder, options.shared_folder);
  return {status.ok() ? Verdict::kFine : Verdict::kProblem,
          absl::StrCat("shared folder ", options.shared_folder),
          status.ok() ? "writable; all nodes must have it at this path" : std::string(status.message())};
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
  if (free.ok() || (is_running && absl::StrContains(free.message(), "the port is in use"))) {
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
  return {CheckSharedFolder(options), CheckWorkerAddress(options, is_running), CheckSlurm()};
}

}  // namespace tandem
