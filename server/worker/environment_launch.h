#ifndef TANDEM_SERVER_WORKER_ENVIRONMENT_LAUNCH_H_
#define TANDEM_SERVER_WORKER_ENVIRONMENT_LAUNCH_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tandem/internal/v1/worker.pb.h"

namespace tandem {

// The options of a worker that starts without a daemon.
struct EnvironmentLaunchOptions {
  // The path of a JobSpec: JSON if its name ends in ".json" or its text begins with "{", otherwise text
  // format. In JSON, a whole Job with a spec is also accepted.
  std::string job_file;
  // The folder of artifacts and checkpoints. All workers must see it at this path.
  std::string output_folder;
  std::vector<std::string> data_folders;
  // The threads of each replica on a CPU. 0: the host's cores, shared among its replicas.
  int threads = 0;
};

// Returns a variable of the environment; nullopt if unset.
using FindVariable = std::function<std::optional<std::string>(const char* name)>;

// Returns the launch of a worker without a daemon: its job, and its place in the group. Reads the variables
// that torchrun and Slurm set:
// - RANK and WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS.
// - MASTER_ADDR and MASTER_PORT: the address where the first of several workers listens. Under torchrun,
//   which itself listens there (TORCHELASTIC_USE_AGENT_STORE), the workers use the next port.
// - LOCAL_RANK and LOCAL_WORLD_SIZE, or SLURM_LOCALID and SLURM_NTASKS_PER_NODE, for threads and GPUs.
// - CUDA_VISIBLE_DEVICES, which may show a worker only its own GPUs.
//
// A worker is one process. If the job gives no number of replicas, each worker has one replica.
// INVALID_ARGUMENT if an option, the job or a variable is wrong. NOT_FOUND if the job's file does not exist.
absl::StatusOr<internal::v1::WorkerLaunch> LaunchFromEnvironment(const EnvironmentLaunchOptions& options,
                                                                 const FindVariable& variable);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKER_ENVIRONMENT_LAUNCH_H_
