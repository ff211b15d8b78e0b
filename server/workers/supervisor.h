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
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"
#include "server/jobs/model_artifact.h"
#include "server/scheduler/worker_starter.h"
#include "server/workers/folder_remover.h"
#include "server/workers/sandbox_options.h"
#include "server/workers/unique_fd.h"
#include "server/workers/worker_launcher.h"
#include "server/workers/worker_protocol.h"
#include "server/workers/worker_session.h"

namespace tandem {

struct SupervisedWorker;

// Starts worker processes, hears them, watches them, and clears up after them. Thread-safe.
//
// A worker belongs to this daemon's user and its state folder, not to this process: it outlives the daemon
// and is adopted by the next one. It is known by the lock that it holds on its job's folder and by its
// attempt number. When a worker's process ends, whatever it started is killed, the events in its spool are
// applied, the job is started again later, or fails, where they do not say how it ended, and then its lease
// is given back.
//
// Where several workers train a job together, the first one alone connects and has a spool. When one of them
// ends before training does, the others get a moment to report it and to go, and are then killed.
class WorkerSupervisor final : public WorkerStarter, public JobObserver, private WorkerSessionHost {
 public:
  struct Options {
    // The tandem-worker program.
    std::string worker_program;
    // Absolute. The jobs' folders are in "jobs" in it, models that jobs begin with in "kept-weights"; workers
    // keep in "cpu-algorithms" and "cuda-plans" what they measured.
    std::string state_folder;
    // The files of a job's data set, as WorkerLaunch.dataset.
    std::function<absl::StatusOr<v1::DatasetSpec>(const v1::DatasetSpec&)> resolve_dataset;
    // The file of a job's initial weights, as WorkerLaunch.initial_weights_path and initial_weights_sha256.
    std::function<absl::StatusOr<ModelFile>(const v1::InitialWeights&)> find_weights;
    // The UUIDs of all GPUs that the daemon has, in the order of their indices.
    std::vector<std::string> gpu_uuids = {};
    // How workers confine themselves.
    SandboxOptions sandbox = {};
    // How long a worker may go on after it was told to stop, before it gets SIGTERM: it ends its step, and
    // writes a checkpoint and its model.
    absl::Duration cancel_grace = absl::Minutes(2);
    // How long a worker may go on after its job has ended, likewise.
    absl::Duration exit_grace = absl::Seconds(30);
    // How long a worker may be silent to those that train a job with it before they give it up. One that
    // trains alone is killed when it has not answered for so long and then has not come back for as long.
    absl::Duration silence_limit = absl::Seconds(30);
    // How much longer one may take that an earlier daemon left: it is between two looks for a daemon, which
    // may just have come.
    absl::Duration adoption_grace = kLeastSilence * kReconnectInterval;
    // How much longer one may take that was just started: it loads its libraries before it comes.
    absl::Duration connect_grace = absl::Minutes(5);
    // How long replicas of a job wait for one that is alive and does not come where they meet.
    absl::Duration collective_time_limit = absl::Minutes(30);
    // From SIGTERM to SIGKILL.
    absl::Duration kill_grace = absl::Seconds(5);
  };
  // Scheduler::ReleaseLease. Called on any thread.
  using ReleaseLease = std::function<void(const std::string& job_id, int32_t attempt, bool crashed)>;

  // Makes the socket's folder. `jobs` must outlive the supervisor.
  static absl::StatusOr<std::unique_ptr<WorkerSupervisor>> Create(Options options, JobMachine* jobs);
  // Stop(). As an observer of the JobMachine, it must outlive the store's writer.
  ~WorkerSupervisor() override;

  // FindLingeringJobs. Restore their leases too, and give them to Begin with the others.
  std::vector<v1::Job> FindLingering();
  // Takes over the workers of an earlier daemon, then listens to workers; before the scheduler starts. `jobs`
  // are those that have not ended, and those that linger, their leases restored: where a worker's lock is
  // held, it is adopted, and has its time to go where its job has ended; where it is free and the worker
  // never came to be, the job is queued again; where it is free, the job ends as its spool says, or fails.
  // UNAVAILABLE: the socket cannot be listened on.
  absl::Status Begin(const std::vector<v1::Job>& jobs, ReleaseLease release_lease);
  // Hears and watches no more; workers go on. After the scheduler was stopped. Idempotent.
  void Stop();
  // Returns true once no worker runs, false after `timeout`.
  bool WaitUntilIdle(absl::Duration timeout);

  // WorkerStarter. The start itself is the monitor's, so that this never waits for a disk or a dying process.
  void Start(const v1::Job& job, const std::vector<v1::Device>& devices) override;

  // JobObserver.
  void OnCancelling(const v1::Job& job) override;
  void OnPausing(const v1::Job& job) override;
  void OnPreempting(const v1::Job& job) override;
  void OnPaused(const v1::Job& job) override;
  void OnQueued(const v1::Job& job) override;
  void OnTerminal(const v1::Job& job) override;
  // Removes the job's folder and what else it keeps, soon.
  void OnDeleted(const v1::Job& job) override;

 private:
  class Service;
  using Worker = SupervisedWorker;
  using Workers = std::map<std::string, std::shared_ptr<Worker>>;

  WorkerSupervisor(Options options, std::string socket_path, JobMachine* jobs, UniqueFd wake_fd);

  absl::Status Admit(const internal::v1::Hello& hello,
                     const std::shared_ptr<WorkerSession>& session) override;
  void Leave(const std::string& job_id, const WorkerSession* session) override;

  absl::Status Listen();
  void Adopt(const v1::Job& job);
  // Tells the worker to stop and gives it its time for that.
  void BeginCancel(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the worker to stop for now; it takes as long as its step and its checkpoint do.
  void BeginPause(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The job's worker, where it is that of its newest attempt; otherwise null.
  Worker* FindWorker(const v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Stopping();
  // Makes the monitor look again.
  void Wake();

  // The monitor's thread.
  void Monitor();
  // Starts, signals, retries and adoptions whose time has come; returns when to look again.
  absl::Time Attend();
  void Launch(const std::shared_ptr<Worker>& worker);
  void Resolve(const std::shared_ptr<Worker>& worker);
  // A process of the worker's, the one of this index, is gone; with the last one, End.
  void EndProcess(const std::shared_ptr<Worker>& worker, int index);
  // All are gone: see the class.
  void End(const std::shared_ptr<Worker>& worker);

  const Options options_;
  const std::string socket_path_;
  const WorkerLauncher launcher_;
  JobMachine* const jobs_;
  const UniqueFd wake_fd_;
  FolderRemover folders_;
  ReleaseLease release_lease_;

  Mutex mutex_;
  // By job id.
  Workers workers_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::thread monitor_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SUPERVISOR_H_
