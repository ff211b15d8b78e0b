#ifndef TANDEM_SERVER_CLUSTERS_SLURM_BATCH_SCRIPT_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_BATCH_SCRIPT_H_

#include <string>
#include <utility>
#include <vector>

namespace tandem {

// Exit codes of the batch script besides srun's.
enum BatchScriptExitCode : int {
  // A path is missing on a node, or cannot be written. The output names the node and the path.
  kBatchPathMissing = 76,
  // The attempt has been started before. This run did nothing.
  kBatchSecondRun = 77,
};

struct BatchScriptOptions {
  // The folder of this attempt, on a file system of all nodes. The script creates these files in it:
  //   started   created exclusively before the first task: Slurm's job id and the node, "123 n1\n"
  //   ended     created after the last task: the exit code, "0\n". Missing if Slurm killed the script.
  //   missing   created by a task that cannot use a path: a line with its node and the path. Slurm then
  //             kills the other tasks, so srun may exit with their code. A task that lacks this folder writes
  //             the line to the output of the batch script.
  std::string attempt_folder;
  // The program of each task and its arguments.
  std::vector<std::string> command;
  // Variables of the tasks, besides the environment of sbatch and Slurm's own. Not for secrets: other users
  // can read the script.
  std::vector<std::pair<std::string, std::string>> environment;
  // Paths that each task's node must have before the task starts. Else the task exits with kBatchPathMissing.
  std::vector<std::string> required_paths;
  int nodes = 1;
  int tasks_per_node = 1;
  int cpus_per_task = 1;
  // The beginning of the path of each task's log, to which stdout and stderr are appended. The rank and
  // ".log" follow. Empty: the output of the batch script.
  std::string task_output;
};

// Returns the text of a bash script for sbatch. The script runs the command once per task, as one step of
// srun, and exits with the step's code. If one task fails, Slurm ends the others. The first SIGUSR1 and the
// first SIGTERM of the script are sent on to all tasks, and the script waits for their end. All names are
// quoted for the shell.
std::string BatchScript(const BatchScriptOptions& options);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_BATCH_SCRIPT_H_
