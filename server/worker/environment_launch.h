#ifndef TANDEM_SERVER_WORKER_ENVIRONMENT_LAUNCH_H_
#define TANDEM_SERVER_WORKER_ENVIRONMENT_LAUNCH_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// How a worker is started without a daemon.
struct EnvironmentLaunchOptions {
  // A JobSpec: JSON where its name ends in ".json", otherwise text format.
  std::string job_file;
  // Where artifacts and checkpoints are written; all workers see it under this path.
  std::string output_folder;
  std::vector<std::string> data_folders;
  // Of each replica on a CPU; 0: the host's, shared among all replicas on it.
  int threads = 0;
};

// A variable of the environment; nothing where it is not set.
using FindVariable = std::function<std::optional<std::string>(const char* name)>;

// What such a worker trains, and its place in the group, by the variables that torchrun and Slurm set: RANK
// and WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS, and for more than one worker MASTER_ADDR and MASTER_PORT,
// where the first one listens; LOCAL_RANK and LOCAL_WORLD_SIZE, or SLURM_LOCALID and SLURM_NTASKS_PER_NODE,
// for threads and GPUs, and CUDA_VISIBLE_DEVICES, which may show a worker its own GPUs alone. A worker is one
// process here: where the job does not say how many replicas there are, each has one. INVALID_ARGUMENT for
// what is wrong with any of these.
absl::StatusOr<internal::v1::WorkerLaunch> LaunchFromEnvironment(const EnvironmentLaunchOptions& options,
                                                                 const FindVariable& variable);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_ENVIRONMENT_LAUNCH_H_
