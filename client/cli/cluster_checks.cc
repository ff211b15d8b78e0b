#include "client/cli/cluster_checks.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "client/cli/format.h"
#include "client/cli/process_options.h"
#include "client/lib/tls_certificate.h"

namespace tandem::cli {
namespace {

constexpr absl::Duration kLongestConnect = absl::Seconds(2);
constexpr int64_t kLittleSharedSpace = int64_t{1} << 30;
constexpr char kDownMend[] =
    "run `sinfo -R` for the nodes' reasons. An administrator of Slurm can set nodes and partitions up. A "
    "host by SSH "
    "must answer `ssh HOST true` on the daemon's machine, as the daemon's user";

void CheckSharedFolder(const std::string& folder, Findings* findings) {
  struct stat info = {};
  struct statvfs disk = {};
  if (stat(folder.c_str(), &info) != 0 || statvfs(folder.c_str(), &disk) != 0) {
    AddProblem(findings, "shared folder", absl::StrCat("cannot reach ", folder, ": ", strerror(errno)),
               "mount it on this machine and on all nodes; the daemon keeps all jobs' files there");
    return;
  }
  const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  const std::string room = absl::StrCat(FormatBytes(free), " are free in ", folder);
  if ((disk.f_flag & ST_RDONLY) != 0) {
    AddProblem(findings, "shared folder", absl::StrCat(folder, " is mounted read-only"),
               "mount it for writing on this machine and on all nodes");
  } else if (free < kLittleSharedSpace) {
    AddProblem(findings, "shared folder", room, "delete jobs (`tandem delete JOB`) or data sets");
  } else {
    AddFine(findings, "shared folder", room);
  }
}

}  // namespace

Findings CheckPartitions(const v1::ListDevicesResponse& cluster) {
  Findings findings;
  if (!cluster.partitions_message().empty()) {
    AddProblem(
        &findings, "cluster", cluster.partitions_message(),
        "run `sinfo` on the daemon's machine, as the daemon's user. Jobs that train on the cluster train on");
    return findings;
  }
  if (cluster.partitions().empty()) return findings;
  int up = 0;
  bool has_default = false;
  for (const v1::ClusterPartition& partition : cluster.partitions()) {
    if (partition.is_up()) ++up;
    has_default = has_default || partition.is_default();
  }
  if (up == 0) {
    AddProblem(
        &findings, "cluster",
        "the cluster answers, but no partition starts jobs: each is down, or all of its nodes are down",
        kDownMend);
    return findings;
  }
  AddFine(
      &findings, "cluster",
      absl::StrCat("the cluster answers; ", up, " of ", cluster.partitions_size(), " partitions take jobs"));
  for (const v1::ClusterPartition& partition : cluster.partitions()) {
    if (partition.is_up()) continue;
    const std::string message = absl::StrCat(
        "the partition \"", partition.name(), "\" starts no jobs: it is down, ",
        partition.nodes() == 0 ? "or it has no nodes"
                               : absl::StrCat("or all of its ", partition.nodes(), " nodes are down"));
    // Jobs that name no partition wait there.
    if (partition.is_default()) {
      AddProblem(&findings, "cluster", message, kDownMend);
    } else {
      AddNote(&findings, "cluster", message, kDownMend);
    }
  }
  if (!has_default) {
    AddNote(&findings, "cluster", "Slurm has no default partition",
            "name a partition in each job: cluster.slurm.partition");
  }
  return findings;
}

Findings CheckClusterOptions(int64_t pid, const std::string& root) {
  Findings findings;
  const ProcessOptions options(pid, root);
  const std::string shared = options.Path("shared-folder"), address = options.Value("worker-listen");
  if (shared.empty() || address.empty()) return findings;
  CheckSharedFolder(shared, &findings);
  // The daemon listens there with TLS.
  if (client::FetchTlsCertificate(address, kLongestConnect).ok()) {
    // bash takes an IPv6 address without brackets.
    const size_t colon = address.rfind(':');
    const std::string host = absl::StrReplaceAll(address.substr(0, colon), {{"[", ""}, {"]", ""}});
    AddFine(
        &findings, "worker address",
        absl::StrCat("the daemon listens at ", address, "; to try it, run on a node: bash -c ': >/dev/tcp/",
                     host, "/", address.substr(colon + 1), "'"));
  } else {
    AddProblem(
        &findings, "worker address",
        absl::StrCat("the daemon does not answer at ", address, ", where the cluster's workers report"),
        "`ip address` must list this address; else start the daemon with another --worker-listen");
  }
  return findings;
}

}  // namespace tandem::cli
