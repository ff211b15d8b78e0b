#include "server/admission/cluster_spec.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/training/replica_spec.h"

namespace tandem {
namespace {

constexpr int kMostNodes = 1024;
constexpr int kMostCores = 1024;
// Slurm announces the end up to two minutes before it. With less, an attempt would only start and stop.
constexpr double kLeastSeconds = 180;
constexpr double kMostSeconds = 31536000;

// Returns the name of an option such as "--constraint=fast"; empty if the text has another form.
absl::string_view NameOf(absl::string_view argument) {
  if (!absl::ConsumePrefix(&argument, "--")) return "";
  return argument.substr(0, argument.find('='));
}

void CheckArguments(const ClusterRules& rules, const v1::SlurmCluster& slurm, FieldViolations* violations) {
  for (int i = 0; i < slurm.extra_arguments_size(); ++i) {
    const std::string& argument = slurm.extra_arguments(i);
    const absl::string_view name = NameOf(argument);
    if (!name.empty() && std::find(rules.allowed_arguments.begin(), rules.allowed_arguments.end(), name) !=
                             rules.allowed_arguments.end()) {
      continue;
    }
    violations->Add(
        absl::StrCat("cluster.slurm.extra_arguments[", i, "]"),
        absl::StrCat("is \"", absl::CHexEscape(argument.substr(0, 200)), "\", and this daemon allows ",
                     rules.allowed_arguments.empty()
                         ? "none"
                         : absl::StrCat("--", absl::StrJoin(rules.allowed_arguments, ", --")),
                     "; an administrator can allow more (--slurm-allow-argument)"));
  }
}

// Returns whether a number is 0, which means unset, or in the range.
bool CheckRange(absl::string_view field, int value, int least, int most, FieldViolations* violations) {
  if (value == 0 || (value >= least && value <= most)) return true;
  violations->Add(field, absl::StrCat("is ", value, "; must be from ", least, " to ", most));
  return false;
}

// Returns the number of replicas that train, at least 1.
int CountReplicas(const v1::Replicas& replicas) {
  if (replicas.worker_load().empty()) return std::max(1, replicas.count());
  return static_cast<int>(std::count_if(replicas.worker_load().begin(), replicas.worker_load().end(),
                                        [](double load) { return load > 0; }));
}

// Returns the largest divisor of `number` that is not above `most`.
int LargestDivisor(int number, int most) {
  int divisor = std::clamp(most, 1, number);
  while (number % divisor != 0) --divisor;
  return divisor;
}

// Chooses the numbers of nodes, workers and replicas, as far as they are unset. `field` is the path of
// `nodes`. By default the workers are on as many nodes as possible, up to `most`.
void FillNodes(const std::string& field, int most, int32_t* nodes, v1::Replicas* replicas,
               FieldViolations* violations) {
  if (CheckRange(field, *nodes, 1, kMostNodes, violations)) {
    // Without a count, each worker gets a replica.
    const bool has_count = replicas->count() > 0 || !replicas->worker_load().empty();
    const int wanted = CountReplicas(*replicas);
    const std::string replicas_text = absl::StrCat(wanted, wanted == 1 ? " replica" : " replicas");
    if (*nodes == 0) {
      *nodes = LargestDivisor(std::max(1, replicas->workers() > 0 ? replicas->workers() : wanted), most);
    } else if (has_count && *nodes > wanted) {
      violations->Add(field, absl::StrCat("is ", *nodes, ", and the job has ", replicas_text,
                                          "; each node needs a replica: set replicas.count to ", *nodes,
                                          " or more, or ask for fewer nodes"));
    } else if (has_count && replicas->workers() == 0 && wanted % *nodes != 0) {
      violations->Add(field,
                      absl::StrCat("is ", *nodes, ", and the job has ", replicas_text,
                                   "; each node has the same number of replicas: ask for a number of nodes "
                                   "that divides ",
                                   wanted));
    }
    if (replicas->workers() == 0) replicas->set_workers(*nodes);
    if (replicas->workers() % *nodes != 0) {
      violations->Add(
          field, absl::StrCat("is ", *nodes, " and must divide the number of workers, ", replicas->workers(),
                              "; leave out replicas.workers for one worker on each node"));
    }
  }
  if (replicas->count() == 0 && replicas->worker_load().empty()) {
    replicas->set_count(std::max(1, replicas->workers()));
  }
}

// Checks fields that only mean something on the daemon's machine.
void CheckNoOwnDevices(const v1::Replicas& replicas, FieldViolations* violations) {
  if (!replicas.devices().empty()) {
    violations->Add("replicas.devices",
                    "names devices of the daemon's machine, and the job is for a cluster; leave it out");
  }
  if (replicas.replicas_per_device() > 1) {
    violations->Add("replicas.replicas_per_device",
                    absl::StrCat("is ", replicas.replicas_per_device(),
                                 "; on a cluster each replica has its own device; leave it out"));
  }
}

// Chooses the kind of device and the GPUs of a node with `on_node` replicas, as far as they are unset.
void FillGpus(int on_node, v1::SlurmCluster* slurm, v1::Replicas* replicas, FieldViolations* violations) {
  const bool are_right =
      CheckRange("cluster.slurm.gpus_per_node", slurm->gpus_per_node(), 1, kMostCores, violations);
  if (IsAnyKind(replicas->device_kind())) {
    replicas->set_device_kind(slurm->gpus_per_node() > 0 ? v1::DEVICE_KIND_GPU : v1::DEVICE_KIND_CPU);
  }
  if (replicas->device_kind() == v1::DEVICE_KIND_GPU) {
    if (slurm->gpus_per_node() == 0) slurm->set_gpus_per_node(on_node);
    if (are_right && slurm->gpus_per_node() < on_node) {
      violations->Add("cluster.slurm.gpus_per_node",
                      absl::StrCat("is ", slurm->gpus_per_node(), ", and each node has ", on_node,
                                   " replicas, which need a GPU each"));
    }
  } else if (slurm->gpus_per_node() > 0) {
    violations->Add("cluster.slurm.gpus_per_node",
                    "is set, but the job trains on CPUs (replicas.device_kind); leave out one of both");
  }
}

void CheckTimeLimit(double seconds, FieldViolations* violations) {
  // NaN fails both comparisons.
  if (seconds == 0 || (seconds >= kLeastSeconds && seconds <= kMostSeconds)) return;
  violations->Add(
      "cluster.slurm.time_limit_seconds",
      absl::StrFormat("is %.15g; must be from %.15g (3 minutes) to %.15g (a year). The job writes "
                      "its checkpoint up to 2 minutes before this limit",
                      seconds, kLeastSeconds, kMostSeconds));
}

// Fills in the cores of each worker, which has `each` replicas. Returns the cores.
int CoresFor(int each, const std::string& field, int cores, FieldViolations* violations) {
  const bool is_right = CheckRange(field, cores, 1, kMostCores, violations);
  return is_right && cores == 0 ? std::min(each, kMostCores) : cores;
}

// Returns the number of replicas of each worker.
int ReplicasOfWorker(const v1::Replicas& replicas) {
  return std::max(1, CountReplicas(replicas) / std::max(1, replicas.workers()));
}

absl::Status FillSlurm(const ClusterRules& rules, v1::SlurmCluster* slurm, v1::Replicas* replicas) {
  FieldViolations violations;
  int32_t nodes = slurm->nodes();
  FillNodes("cluster.slurm.nodes", kMostNodes, &nodes, replicas, &violations);
  slurm->set_nodes(nodes);
  CheckNoOwnDevices(*replicas, &violations);
  const int workers = std::max(1, replicas->workers());
  const int each = ReplicasOfWorker(*replicas);
  FillGpus(each * std::max(1, workers / std::max(1, nodes)), slurm, replicas, &violations);
  slurm->set_cpus_per_task(
      CoresFor(each, "cluster.slurm.cpus_per_task", slurm->cpus_per_task(), &violations));
  CheckTimeLimit(slurm->time_limit_seconds(), &violations);
  CheckArguments(rules, *slurm, &violations);
  return violations.ToStatus();
}

absl::Status FillSsh(const ClusterRules& rules, v1::SshCluster* ssh, v1::Replicas* replicas) {
  FieldViolations violations;
  int32_t nodes = ssh->nodes();
  FillNodes("cluster.ssh.nodes", rules.ssh_hosts, &nodes, replicas, &violations);
  ssh->set_nodes(nodes);
  CheckNoOwnDevices(*replicas, &violations);
  if (IsAnyKind(replicas->device_kind())) replicas->set_device_kind(v1::DEVICE_KIND_CPU);
  ssh->set_cpus_per_task(
      CoresFor(ReplicasOfWorker(*replicas), "cluster.ssh.cpus_per_task", ssh->cpus_per_task(), &violations));
  return violations.ToStatus();
}

}  // namespace

std::string ClusterField(const v1::Cluster& cluster) {
  return cluster.has_ssh() ? "cluster.ssh" : "cluster.slurm";
}

absl::Status FillCluster(const ClusterRules& rules, v1::JobSpec* spec) {
  if (!spec->has_cluster()) return absl::OkStatus();
  v1::Cluster* const cluster = spec->mutable_cluster();
  switch (cluster->kind_case()) {
    case v1::Cluster::kSlurm:
      if (rules.has_slurm) return FillSlurm(rules, cluster->mutable_slurm(), spec->mutable_replicas());
      return FieldError("cluster.slurm",
                        rules.ssh_hosts > 0
                            ? "is set, but this daemon's cluster is its own hosts; use cluster.ssh"
                            : "is set, but this daemon has no cluster; start it with --shared-folder and "
                              "--worker-listen");
    case v1::Cluster::kSsh:
      if (rules.ssh_hosts > 0) return FillSsh(rules, cluster->mutable_ssh(), spec->mutable_replicas());
      return FieldError("cluster.ssh",
                        rules.has_slurm ? "is set, but this daemon's cluster is Slurm's; use cluster.slurm"
                                        : "is set, but this daemon has no cluster; start it with --ssh-host, "
                                          "--shared-folder and --worker-listen");
    case v1::Cluster::KIND_NOT_SET:
      break;
  }
  return FieldError("cluster", "must name a kind of cluster: slurm or ssh");
}

}  // namespace tandem
