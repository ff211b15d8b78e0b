#include "server/daemon/cluster_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/str_cat.h"
#include "server/auth/listen_policy.h"

namespace tandem {

void AddClusterOptions(DaemonOptions* options, CLI::App* app) {
  app->add_option(
         "--shared-folder", options->shared_folder,
         "Folder on a file system that all nodes of the Slurm cluster see at the same path. With it, jobs "
         "may run on the cluster (cluster.slurm in a job). It then has the folders of all jobs, uploads and "
         "the cache, and is for this daemon alone. Needs --worker-listen")
      ->type_name("DIR")
      ->group("Slurm");
  app->add_option("--worker-listen", options->worker_listen,
                  "Numeric address and port of this machine at which workers on the cluster report, such as "
                  "10.0.0.1:7448. Always TLS, with a certificate that the daemon makes itself. Needs "
                  "--shared-folder")
      ->type_name("HOST:PORT")
      ->group("Slurm");
  app->add_option("--slurm-allow-argument", options->slurm_allow_arguments,
                  "Name of an option of sbatch that jobs may give in cluster.slurm.extra_arguments, such as "
                  "constraint; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->group("Slurm");
}

absl::Status CheckClusterOptions(const DaemonOptions& options) {
  if (options.shared_folder.empty() != options.worker_listen.empty()) {
    return absl::InvalidArgumentError("--shared-folder and --worker-listen must be given together");
  }
  if (options.shared_folder.empty()) return absl::OkStatus();
  if (options.shared_folder.front() != '/') {
    return absl::InvalidArgumentError(absl::StrCat("--shared-folder is '", options.shared_folder,
                                                   "'; must be an absolute path, the same on all nodes"));
  }
  const auto wrong = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker-listen is '", options.worker_listen, "'", problem,
                     "; must be an address of this machine that the nodes reach, and a port, such as "
                     "10.0.0.1:7448"));
  };
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options.worker_listen);
  if (!address.ok()) return wrong("");
  in6_addr bytes = {};
  const bool is_v6 = options.worker_listen.front() == '[';
  const bool is_numeric = inet_pton(is_v6 ? AF_INET6 : AF_INET, address->host.c_str(), &bytes) == 1;
  if (!is_numeric || address->port == 0) return wrong("");
  if (address->IsLoopback()) return wrong(", which only this machine reaches");
  if (address->host == "0.0.0.0" || (is_v6 && IN6_IS_ADDR_UNSPECIFIED(&bytes))) {
    return wrong(", which is no single address");
  }
  return absl::OkStatus();
}

}  // namespace tandem
