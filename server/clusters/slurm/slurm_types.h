#ifndef TANDEM_SERVER_CLUSTERS_SLURM_SLURM_TYPES_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_SLURM_TYPES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/clusters/slurm/slurm_state.h"

namespace tandem {

// Each job of Tandem has a comment that starts with this text: "tandem:JOB:ATTEMPT".
inline constexpr char kSlurmCommentPrefix[] = "tandem:";

// A job for sbatch. Strings may have any character but NUL, unless their comment says otherwise.
struct SlurmRequest {
  // The job's name in Slurm's lists. Empty: the name of the script.
  std::string name;
  // Empty: the cluster's default.
  std::string partition, account, qos;
  // The tag that Poll and Find read. Starts with kSlurmCommentPrefix, then has printable ASCII without
  // spaces and "|".
  std::string comment;
  // At least 1.
  int nodes = 1;
  int tasks_per_node = 1;
  int cpus_per_task = 1;
  // 0: none.
  int gpus_per_node = 0;
  // Rounded up to seconds. Zero: the partition's default; InfiniteDuration: none.
  absl::Duration time_limit = absl::ZeroDuration();
  // More options of sbatch, each a whole long option, such as "--constraint=a100". Tandem's own options win
  // over these. Options that replace the script or make several jobs are refused.
  std::vector<std::string> extra_arguments;
  // The batch script (BatchScript). Absolute; sbatch keeps a copy. Test does without.
  std::string script_path;
  // The file for stdout and stderr of the script and the tasks. Absolute, without backslashes.
  std::string output_path;
  // The working folder of the script and the tasks. Absolute.
  std::string work_folder;
};

// A job as squeue shows it.
struct SlurmJob {
  // "123"; only foreign jobs have other forms, such as "123_[1-4]".
  std::string id;
  SlurmState state = SlurmState::kUnknown;
  // Slurm's name of the state; of use if `state` is kUnknown.
  std::string state_text;
  // Slurm's reason for the state, such as "Resources" or "NonZeroExitCode". Empty if Slurm gives none.
  std::string reason;
  std::string comment;
  // The job's last start; Slurm's estimate for a pending job. In whole seconds. Empty if Slurm has none.
  std::optional<absl::Time> start;
  // The nodes of a job that has started, one by one.
  std::vector<std::string> nodes;

  bool operator==(const SlurmJob&) const = default;
};

// A partition as sinfo shows it.
struct SlurmPartition {
  std::string name;
  bool is_default = false;
  // True if the partition takes and starts jobs.
  bool is_up = false;
  // InfiniteDuration: none.
  absl::Duration time_limit = absl::InfiniteDuration();
  int nodes = 0;
  // Nodes that are idle and answer. Slurm may wake such a node first.
  int free_nodes = 0;
  // Nodes that are free, in use, or partly in use. Other nodes are down, drained or not yet known.
  int ready_nodes = 0;
  // Nodes that are down, drained or failing, or do not answer. A node that restarts or is reserved is neither
  // ready nor down.
  int down_nodes = 0;
  // Of the smallest node, if nodes differ. A node that has not registered yet counts 1 core.
  int cpus_per_node = 0;
  // Of the largest node.
  int most_cpus_per_node = 0;
  // Of the node with the fewest GPUs, if nodes differ.
  int gpus_per_node = 0;
  // Of the node with the most GPUs. Another node may have the most cores.
  int most_gpus_per_node = 0;
  // Sums over all nodes. A part of a node can be free.
  int cpus = 0;
  int free_cpus = 0;
  int gpus = 0;
  // The GPUs of free nodes. GPUs that are free on a busy node are not counted.
  int free_gpus = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_SLURM_TYPES_H_
