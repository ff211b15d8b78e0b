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

// Makes a job's folder ready and starts its worker. Immutable, so thread-safe.
class WorkerLauncher {
 public:
  struct Options {
    // The tandem-worker program.
    std::string worker_program;
    // Where workers find the daemon, as a gRPC target.
    std::string daemon_target;
    // The files of a job's data set, as WorkerLaunch.dataset.
    std::function<absl::StatusOr<v1::DatasetSpec>(const v1::DatasetSpec&)> resolve_dataset;
    // The file of a job's initial weights, which is never changed in place.
    std::function<absl::StatusOr<ModelFile>(const v1::InitialWeights&)> find_weights;
    // How long a worker may be silent to those that train a job with it, as WorkerGroup.silence_seconds.
    absl::Duration silence_limit = absl::Seconds(30);
    // How long replicas wait for one that is alive and does not come, as WorkerLaunch.watchdog_seconds.
    absl::Duration collective_time_limit = absl::Minutes(30);
    // Where workers keep which algorithms are the fastest, for all later ones; empty: nowhere.
    std::string algorithms_folder = {};
    // The UUIDs of all GPUs that the daemon has, in the order of their indices.
    std::vector<std::string> gpu_uuids = {};
    // How workers confine themselves.
    SandboxOptions sandbox = {};
    // Adds a sentence to the job's log; null: to none. Called in Launch.
    std::function<void(const v1::Job& job, const std::string& message)> tell = {};
    // For tests that make it fail.
    LinkFunction link = ::link;
  };

  explicit WorkerLauncher(Options options) : options_(std::move(options)) {}

  // Starts the workers for Job.attempt on these devices, in the order of ranks: as many as the job wants.
  // They are told `secret` (worker_secret.h). UNAVAILABLE: a worker of an earlier attempt held one of the
  // job's locks and was killed; it is gone soon, so try again. Other errors: they could not be started, and
  // will not be; none runs. Waits for nothing but the disk.
  absl::StatusOr<std::vector<std::unique_ptr<WorkerProcess>>> Launch(const v1::Job& job,
                                                                     const std::vector<v1::Device>& devices,
                                                                     const std::string& secret) const;

 private:
  // What all of a job's workers are started with.
  absl::StatusOr<internal::v1::WorkerLaunch> MakeLaunch(const v1::Job& job,
                                                        const std::vector<v1::Device>& devices,
                                                        const std::string& secret) const;
  // WorkerLaunch.initial_weights_path and its digest. Another job's model is kept (kept_weights.h), or read
  // where it is, of which the job is told, where file systems have no second names.
  absl::StatusOr<ModelFile> InitialWeightsOf(const v1::Job& job) const;
  // Starts one, which inherits `lock`.
  absl::StatusOr<std::unique_ptr<WorkerProcess>> LaunchOne(const internal::v1::WorkerLaunch& launch,
                                                           WorkerLock& lock) const;

  const Options options_;
};

// The environment of a worker on these devices: what of the daemon's has a meaning to libraries, and how
// OpenMP is to behave, which it reads when a process starts. `algorithms_folder`, if not empty, is where it
// keeps which algorithms are the fastest, unless the daemon's environment says where. CUDA sees `gpu_uuids`
// in this order, so that its number of a GPU is the device's index, and none where no device is a GPU.
std::vector<std::string> WorkerEnvironment(const std::vector<v1::Device>& devices,
                                           const std::string& algorithms_folder,
                                           const std::vector<std::string>& gpu_uuids);

// What each of a job's workers has in its environment beside that where its replicas may be brought together
// by NCCL: they are on several GPUs, or in several processes.
// TANDEM_NCCL=0 if workers share a GPU, unless the daemon's environment has TANDEM_NCCL: NCCL refuses a GPU
// that is there twice, and kernels of two processes on one GPU, which wait for each other, would be given it
// in turns. TANDEM_COLLECTIVE_TIME_LIMIT: WorkerLaunch.watchdog_seconds, for waits of which only a GPU knows.
std::vector<std::string> CollectiveEnvironment(const internal::v1::WorkerLaunch& launch);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_LAUNCHER_H_
