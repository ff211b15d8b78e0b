#include "server/daemon/cluster_check.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "server/auth/listen_policy.h"
#include "server/clusters/slurm/slurm_command_client.h"
#include "server/clusters/ssh/ssh_command_client.h"
#include "server/rpc/rpc_server.h"
#include "server/store/state_folder.h"

namespace tandem {
namespace {

using Verdict = Check::Verdict;

// A person waits for the answer.
constexpr absl::Duration kSlurmTimeLimit = absl::Seconds(10);
constexpr absl::Duration kHostTimeLimit = absl::Seconds(10);

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

// Looks at a host by SSH, and at the paths that its workers need.
// `machines` has the first host of each machine, by Host::machine.
Check CheckHost(const std::string& host, const DaemonOptions& options,
                std::map<std::string, std::string>* machines) {
  Check check{Verdict::kProblem, absl::StrCat("host ", host), ""};
  SshCommandClient ssh({.time_limit = kHostTimeLimit});
  const absl::StatusOr<Host> size = ssh.Look(host);
  if (!size.ok()) {
    // The host may be back when the daemon starts.
    check.verdict = absl::IsUnavailable(size.status()) ? Verdict::kWarning : Verdict::kProblem;
    check.message = std::string(size.status().message());
    return check;
  }
  if (!size->machine.empty()) {
    const auto [first, is_first] = machines->emplace(size->machine, host);
    if (!is_first) {
      check.message = DescribeSameMachine(host, first->second);
      return check;
    }
  }
  const std::string probe = absl::StrCat(options.shared_folder, "/tandem-check-", getpid());
  std::vector<std::string> paths = {std::filesystem::absolute(options.worker_program).string()};
  // A new file tells the shared folder from another folder with its path. CheckSharedFolder reports a folder
  // that cannot be written.
  if (std::ofstream(probe).good()) paths.push_back(probe);
  const absl::Status there = ssh.CheckPaths(host, paths);
  unlink(probe.c_str());
  if (!there.ok()) {
    check.message = std::string(there.message());
    return check;
  }
  check.verdict = Verdict::kFine;
  check.message = absl::StrCat("answers; cores: ", size->cores, ", GPUs: ", size->gpus);
  return check;
}

}  // namespace

std::vector<Check> CheckCluster(const DaemonOptions& options, const std::vector<OptionFault>& faults,
                                bool is_running) {
  std::vector<Check> checks;
  for (const OptionFault& fault : faults) checks.push_back({Verdict::kProblem, fault.option, fault.message});
  if (options.shared_folder.empty() && options.worker_listen.empty() && options.ssh_hosts.empty())
    return checks;
  const auto is_whole = [&](const std::string& value, absl::string_view option) {
    return !value.empty() && std::none_of(faults.begin(), faults.end(),
                                          [&](const OptionFault& fault) { return fault.option == option; });
  };
  if (is_whole(options.shared_folder, "--shared-folder")) checks.push_back(CheckSharedFolder(options));
  if (is_whole(options.worker_listen, "--worker-listen")) {
    checks.push_back(CheckWorkerAddress(options, is_running));
  }
  if (options.ssh_hosts.empty()) checks.push_back(CheckSlurm());
  if (options.ssh_hosts.empty() || !is_whole("HOST", "--ssh-host")) return checks;
  std::map<std::string, std::string> machines;
  for (const std::string& host : options.ssh_hosts) {
    checks.push_back(CheckHost(host, options, &machines));
  }
  return checks;
}

}  // namespace tandem
