#ifndef TANDEM_SERVER_WORKERS_WORKER_LAUNCHER_H_
#define TANDEM_SERVER_WORKERS_WORKER_LAUNCHER_H_

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/jobs/model_artifact.h"
#include "server/workers/kept_weights.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/worker_lock.h"
#include "server/workers/worker_process.h"
#include "tandem/internal/v1/worker.pb.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Prepares a job's folder and starts its workers. Immutable, so thread-safe.
class WorkerLauncher {
 public:
  struct Options {
    // The path of tandem-worker.
    std::string worker_program;
    // The daemon's gRPC target for workers.
    std::string daemon_target;
    // Returns the files of a job's data set, for WorkerLaunch.dataset.
    std::function<absl::StatusOr<v1::DatasetSpec>(const v1::DatasetSpec&)> resolve_dataset;
    // Returns the file of a job's initial weights, which never changes in place.
    std::function<absl::StatusOr<ModelFile>(const v1::InitialWeights&)> find_weights;
    // The silence after which a group gives up a worker, for WorkerGroup.silence_seconds.
    absl::Duration silence_limit = absl::Seconds(30);
    // The time that replicas wait for a live replica that misses a collective, for
    // WorkerLaunch.watchdog_seconds.
    absl::Duration collective_time_limit = absl::Minutes(30);
    // The folder where workers keep the fastest algorithms for later workers; empty: none.
    std::string algorithms_folder = {};
    // The UUIDs of all of the daemon's GPUs, in the order of their indices.
    std::vector<std::string> gpu_uuids = {};
    // The sandbox of workers.
    SandboxOptions sandbox = {};
    // Adds a notice to the job's log. May be null. Called in Launch.
    std::function<void(const v1::Job& job, const std::string& message)> tell = {};
    // For tests that make linking fail.
    LinkFunction link = ::link;
  };

  explicit WorkerLauncher(Options options) : options_(std::move(options)) {}

  // Starts the job's workers for Job.attempt on these devices, in the order of ranks, and gives them `secret`
  // (worker_secret.h). UNAVAILABLE: a worker of an earlier attempt held a lock and was killed; try again
  // soon. After other errors no worker runs or will run. Blocks only on the disk.
  absl::StatusOr<std::vector<std::unique_ptr<ProcessGroup>>> Launch(const v1::Job& job,
                                                                    const std::vector<v1::Device>& devices,
                                                                    const std::string& secret) const;

  // Returns the common launch of all of a job's workers, and creates the folder where several workers meet.
  // The attempt's folder must exist. Blocks only on the disk.
  absl::StatusOr<internal::v1::WorkerLaunch> MakeLaunch(const v1::Job& job,
                                                        const std::vector<v1::Device>& devices,
                                                        const std::string& secret) const;

 private:
  // Returns WorkerLaunch.initial_weights_path and its digest. Keeps another job's model (kept_weights.h). If
  // the file systems have no hard links, uses the model in place, and tells the job. FAILED_PRECONDITION: the
  // job starts from an uploaded file that it no longer keeps.
  absl::StatusOr<ModelFile> InitialWeightsOf(const v1::Job& job) const;
  // Starts one worker, which inherits `lock`.
  absl::StatusOr<std::unique_ptr<ProcessGroup>> LaunchOne(const internal::v1::WorkerLaunch& launch,
                                                          WorkerLock& lock) const;

  const Options options_;
};

// Returns the environment of a worker on these devices: the daemon's variables that libraries use, and
// settings of OpenMP, which reads them when a process starts. `algorithms_folder`, if not empty, keeps the
// fastest algorithms, unless the daemon's environment names another folder. CUDA sees `gpu_uuids` in this
// order, so that CUDA's numbers are the devices' indices. Without a GPU among the devices, CUDA sees none.
std::vector<std::string> WorkerEnvironment(const std::vector<v1::Device>& devices,
                                           const std::string& algorithms_folder,
                                           const std::vector<std::string>& gpu_uuids);

// Returns more variables for each worker of a job whose replicas may use NCCL: replicas on several GPUs or in
// several processes.
// - TANDEM_NCCL=0 if workers share a GPU and the daemon's environment does not set TANDEM_NCCL. NCCL refuses
//   a repeated GPU, and kernels of two processes that wait for each other would get the GPU in turns.
// - TANDEM_COLLECTIVE_TIME_LIMIT: WorkerLaunch.watchdog_seconds, for waits on a GPU.
std::vector<std::string> CollectiveEnvironment(const internal::v1::WorkerLaunch& launch);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_LAUNCHER_H_
