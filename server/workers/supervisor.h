#ifndef TANDEM_SERVER_WORKERS_SUPERVISOR_H_
#define TANDEM_SERVER_WORKERS_SUPERVISOR_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/unique_fd.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"
#include "server/jobs/model_artifact.h"
#include "server/scheduler/worker_starter.h"
#include "server/workers/folder_remover.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/worker_launcher.h"
#include "server/workers/worker_protocol.h"
#include "server/workers/worker_service.h"
#include "server/workers/worker_session.h"

namespace tandem {

class SupervisedWorker;

// Starts worker processes, receives their events, watches them, and cleans up after them. Thread-safe.
//
// A worker belongs to this daemon's user and state folder, not to this process: it outlives the daemon, and
// the next daemon adopts it. It is identified by its lock on the job's folder and by its attempt number. When
// a worker's process ends, its children are killed and the events in its spool are applied. If the events do
// not tell how the job ended, the job restarts later or fails. Then the lease returns.
//
// In a group of workers for one job, only the first connects and has a spool. If a worker ends before the
// training, the others have a moment to report it and to exit, and are then killed.
class WorkerSupervisor final : public WorkerStarter, public JobObserver, private WorkerSessionHost {
 public:
  struct Options {
    // The path of tandem-worker.
    std::string worker_program;
    // Absolute. "jobs" in it has the jobs' folders, and "kept-weights" the models from which jobs start.
    // Workers keep their measurements in "cpu-algorithms" and "cuda-plans".
    std::string state_folder;
    // Returns the files of a job's data set, for WorkerLaunch.dataset.
    std::function<absl::StatusOr<v1::DatasetSpec>(const v1::DatasetSpec&)> resolve_dataset;
    // Returns the file of a job's initial weights, for WorkerLaunch.initial_weights_path and
    // initial_weights_sha256.
    std::function<absl::StatusOr<ModelFile>(const v1::InitialWeights&)> find_weights;
    // The UUIDs of all of the daemon's GPUs, in the order of their indices.
    std::vector<std::string> gpu_uuids = {};
    // The sandbox of workers.
    SandboxOptions sandbox = {};
    // The time from the order to stop until SIGTERM. Meanwhile the worker finishes its step, and writes a
    // checkpoint and its model.
    absl::Duration cancel_grace = absl::Minutes(2);
    // The time from the end of a worker's job until SIGTERM.
    absl::Duration exit_grace = absl::Seconds(30);
    // In a group, a worker that is silent for this time counts as lost. A worker that trains alone is killed
    // if it does not answer for this time and then does not reconnect for the same time again.
    absl::Duration silence_limit = absl::Seconds(30);
    // The additional time for a worker of an earlier daemon, which may be between two searches for a daemon.
    absl::Duration adoption_grace = kLeastSilence * kReconnectInterval;
    // The additional time for a new worker, which loads its libraries before it connects.
    absl::Duration connect_grace = absl::Minutes(5);
    // The time that replicas wait for a live replica that misses a collective.
    absl::Duration collective_time_limit = absl::Minutes(30);
    // The time from SIGTERM to SIGKILL.
    absl::Duration kill_grace = absl::Seconds(5);
  };
  // Scheduler::ReleaseLease. Called on any thread.
  using ReleaseLease = std::function<void(const std::string& job_id, int32_t attempt, bool crashed)>;

  // Creates the socket's folder. `jobs` must outlive the supervisor.
  static absl::StatusOr<std::unique_ptr<WorkerSupervisor>> Create(Options options, JobMachine* jobs);
  // Calls Stop. As an observer of the JobMachine, the supervisor must outlive the store's writer.
  ~WorkerSupervisor() override;

  // Returns the jobs that have ended, are paused, are queued again, were deleted, or are missing in a
  // restored database, but whose worker still runs: the worker hangs, or the daemon was replaced before the
  // worker's end. A job that is queued again is returned as PAUSED. A deleted or missing job has only its
  // name, attempt, folder, devices and device share; its state is unspecified. Restore the jobs' leases, and
  // pass them to Begin with the others.
  std::vector<v1::Job> FindLingering();
  // Adopts an earlier daemon's workers, then listens to workers. Call before the scheduler starts. `jobs` are
  // the jobs that have not ended and the lingering jobs, with restored leases. If a worker's lock is held,
  // the worker is adopted; if its job has ended, it has its usual time to exit. If the lock is free and the
  // worker never started, the job is queued again. Otherwise the job ends as its spool says, or fails.
  // Ignores jobs on a cluster. UNAVAILABLE: cannot listen on the socket.
  absl::Status Begin(const std::vector<v1::Job>& jobs, ReleaseLease release_lease);
  // Stops receiving and watching; workers continue. Call after the scheduler was stopped. Idempotent.
  void Stop();
  // Blocks until no worker runs. Returns false after `timeout`.
  bool WaitUntilIdle(absl::Duration timeout);

  // WorkerStarter. The monitor starts the worker, so that this call never waits for a disk or an ending
  // process.
  void Start(const v1::Job& job, const std::vector<v1::Device>& devices) override;

  // JobObserver.
  void OnMoved(const v1::Job& job) override;
  // Removes the job's folder and kept weights soon.
  void OnDeleted(const v1::Job& job) override;

 private:
  using Worker = SupervisedWorker;
  using Workers = std::map<std::string, std::shared_ptr<Worker>>;

  WorkerSupervisor(Options options, std::string socket_path, JobMachine* jobs, UniqueFd wake_fd);

  absl::Status Admit(const internal::v1::Hello& hello,
                     const std::shared_ptr<WorkerSession>& session) override;
  void Leave(const std::string& job_id, const WorkerSession* session) override;

  absl::Status Listen();
  void Adopt(const v1::Job& job);
  // Tells the worker of a job in this state to stop, pause or exit if it must, and starts the time after
  // which it gets SIGTERM. UNSPECIFIED: the database does not have the job.
  void Follow(v1::JobState state, Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Stopping();
  // Wakes the monitor.
  void Wake();

  // Runs the monitor's thread.
  void Monitor();
  // Performs the starts, signals, retries and adoptions that are due. Returns the time of the next action.
  absl::Time Attend();
  void Launch(const std::shared_ptr<Worker>& worker);
  void Resolve(const std::shared_ptr<Worker>& worker);
  // Handles the end of a worker's process with this index. After the last process, calls End.
  void EndProcess(const std::shared_ptr<Worker>& worker, int index);
  // Handles the end of all processes. See the class.
  void End(const std::shared_ptr<Worker>& worker);

  const Options options_;
  const std::string socket_path_;
  const WorkerLauncher launcher_;
  JobMachine* const jobs_;
  const UniqueFd wake_fd_;
  FolderRemover folders_;
  ReleaseLease release_lease_;

  Mutex mutex_;
  // Keyed by job id.
  Workers workers_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<WorkerStreams> service_;
  std::unique_ptr<grpc::Server> server_;
  std::thread monitor_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SUPERVISOR_H_
