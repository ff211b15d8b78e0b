#ifndef TANDEM_SERVER_ADMISSION_CLUSTER_SPEC_H_
#define TANDEM_SERVER_ADMISSION_CLUSTER_SPEC_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The daemon's rules for jobs on a cluster.
struct ClusterRules {
  // True if the daemon has a Slurm cluster.
  bool has_slurm = false;
  // The number of the daemon's hosts by SSH.
  int ssh_hosts = 0;
  // The names of sbatch's options that a job may give, such as "constraint".
  std::vector<std::string> allowed_arguments = {};
  // Asks the cluster if it would take a job with this spec, which has its defaults. INVALID_ARGUMENT, with
  // fields relative to the message in Cluster.kind, if not. UNAVAILABLE if the cluster does not answer. May
  // be null.
  std::function<absl::Status(const v1::JobSpec&)> test = {};
};

// Fills in the defaults of a job's cluster, and the number and kind of its replicas. Call before other
// defaults are filled in. INVALID_ARGUMENT, with fields relative to the spec, for every wrong field. Does
// nothing for a job without a cluster.
absl::Status FillCluster(const ClusterRules& rules, v1::JobSpec* spec);

// Returns the path of a cluster's kind in JobSpec: "cluster.slurm" or "cluster.ssh".
std::string ClusterField(const v1::Cluster& cluster);

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_CLUSTER_SPEC_H_
