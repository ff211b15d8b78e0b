#include "server/daemon/cluster_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/auth/listen_policy.h"
#include "server/clusters/ssh/host.h"

namespace tandem {

void AddClusterOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option(
         "--shared-folder", options->shared_folder,
         "Folder on a file system that all nodes of the cluster see at the same path. With it, jobs may run "
         "on a Slurm cluster (cluster.slurm in a job), or on the hosts of --ssh-host (cluster.ssh). It then "
         "has the folders of all jobs, uploads and the cache, and is for this daemon alone. Needs "
         "--worker-listen")
      ->type_name("DIR")
      ->group("Cluster");
  app->add_option("--worker-listen", options->worker_listen,
                  "Numeric address and port of this machine at which workers on the cluster report, such as "
                  "10.0.0.1:7448. Always TLS, with a certificate that the daemon makes itself. Needs "
                  "--shared-folder")
      ->type_name("ADDRESS")
      ->group("Cluster");
  app->add_option("--ssh-host", options->ssh_hosts,
                  "Host that trains jobs, as ssh takes it: gpu1, user@gpu1, or a Host of ~/.ssh/config; "
                  "repeatable. The daemon's user must reach it by `ssh gpu1 true`, without a question. Needs "
                  "--shared-folder. Without it, the cluster is Slurm's")
      ->type_name("HOST")
      ->allow_extra_args(false)
      ->group("Cluster");
  app->add_option("--slurm-allow-argument", options->slurm_allow_arguments,
                  "Name of an option of sbatch that jobs may give in cluster.slurm.extra_arguments, such as "
                  "constraint; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->group("Cluster");
}

namespace {

// Returns why workers on other hosts cannot use the address; empty if they can.
std::string FaultOfWorkerListen(const std::string& text) {
  const auto wrong = [&](absl::string_view problem) {
    return absl::StrCat("is '", text, "'", problem,
                        "; must be an address of this machine that the nodes reach, and a port, such as "
                        "10.0.0.1:7448");
  };
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(text);
  if (!address.ok()) return wrong("");
  in6_addr bytes = {};
  const bool is_v6 = text.front() == '[';
  const bool is_numeric = inet_pton(is_v6 ? AF_INET6 : AF_INET, address->host.c_str(), &bytes) == 1;
  if (!is_numeric || address->port == 0) return wrong("");
  if (address->IsLoopback()) return wrong(", which only this machine reaches");
  if (address->host == "0.0.0.0" || (is_v6 && IN6_IS_ADDR_UNSPECIFIED(&bytes))) {
    return wrong(", which is no single address");
  }
  return "";
}

bool IsOptionName(absl::string_view text) {
  return !text.empty() && absl::ascii_isalpha(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isalnum(c) || c == '-'; });
}

}  // namespace

std::vector<OptionFault> FaultsOfClusterOptions(const DaemonOptions& options) {
  std::vector<OptionFault> faults;
  const std::string& shared = options.shared_folder;
  if (shared.empty() != options.worker_listen.empty()) {
    faults.push_back({shared.empty() ? "--worker-listen" : "--shared-folder",
                      absl::StrCat("needs ", shared.empty() ? "--shared-folder" : "--worker-listen",
                                   ": both must be given together")});
  }
  if (!shared.empty() && shared.front() != '/') {
    faults.push_back({"--shared-folder",
                      absl::StrCat("is '", shared, "'; must be an absolute path, the same on all nodes")});
  }
  if (!options.worker_listen.empty()) {
    std::string fault = FaultOfWorkerListen(options.worker_listen);
    if (!fault.empty()) faults.push_back({"--worker-listen", std::move(fault)});
  }
  for (size_t i = 0; i < options.ssh_hosts.size(); ++i) {
    const std::string& host = options.ssh_hosts[i];
    std::string fault = FaultOfHostName(host);
    const auto end = options.ssh_hosts.begin() + static_cast<std::ptrdiff_t>(i);
    if (fault.empty() && std::find(options.ssh_hosts.begin(), end, host) != end) {
      fault = absl::StrCat("has '", host, "' twice; name each host once");
    }
    if (!fault.empty()) faults.push_back({"--ssh-host", std::move(fault)});
  }
  if (!options.ssh_hosts.empty() && shared.empty()) {
    faults.push_back({"--ssh-host", "needs --shared-folder and --worker-listen"});
  }
  for (const std::string& name : options.slurm_allow_arguments) {
    if (IsOptionName(name)) continue;
    faults.push_back({"--slurm-allow-argument",
                      absl::StrCat("is '", name,
                                   "'; must be the name of a long option of sbatch, without dashes in front "
                                   "and without a value, such as constraint")});
  }
  return faults;
}

absl::Status CheckClusterOptions(const DaemonOptions& options) {
  const std::vector<OptionFault> faults = FaultsOfClusterOptions(options);
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrJoin(faults, "\n", [](std::string* out, const OptionFault& fault) {
        absl::StrAppend(out, fault.option, " ", fault.message);
      }));
}

}  // namespace tandem
