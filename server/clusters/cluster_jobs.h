#ifndef TANDEM_SERVER_CLUSTERS_CLUSTER_JOBS_H_
#define TANDEM_SERVER_CLUSTERS_CLUSTER_JOBS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/clusters/cluster_run.h"
#include "server/clusters/launch_preparer.h"
#include "server/clusters/launcher.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/job_observer.h"
#include "server/scheduler/worker_starter.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_session.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Runs jobs on a cluster: starts their attempts through a Launcher, observes them, receives their events, and
// settles their ends. Thread-safe.
//
// Each attempt is started at most once. The attempt's number is durable before Submit: the job is STARTING.
// After a crash, the next daemon asks the launcher for the attempt. If the launcher does not know an attempt
// that was never started, the job is queued again and gets a new attempt.
//
// Absence is not failure. An attempt is lost only if it was missing from all whole answers for
// `absence_limit`, and its workers were silent for the same time. An attempt that began and is in the
// launcher's queue again counts as missing. An attempt that never started is queued again
// after `unstarted_absence_limit`: a controller that is killed forgets its newest jobs. If the forgotten
// attempt still starts, its workers are dismissed.
//
// A single thread calls the launcher: one observation of all attempts each `observe_every`.
class ClusterJobs final : public WorkerStarter, public JobObserver, public WorkerSessionHost {
 public:
  struct Options {
    LaunchPreparer::Options launch;
    // The parent of the jobs' folders, as the nodes see it, without symbolic links.
    std::string jobs_folder;
    // The time from the order to cancel until the launcher ends the attempt, in which the workers write a
    // checkpoint and the model. Without a training, the launcher ends the attempt at once.
    absl::Duration cancel_grace = absl::Minutes(2);
    // The time that the workers have to exit after their job's end.
    absl::Duration exit_grace = absl::Seconds(30);
    absl::Duration observe_every = absl::Seconds(3);
    // The time between two submissions of an attempt while the launcher takes no more jobs.
    absl::Duration resubmit_every = absl::Seconds(30);
    absl::Duration absence_limit = absl::Minutes(5);
    absl::Duration unstarted_absence_limit = absl::Seconds(30);
    // The time after an attempt's start in which its worker should connect. After this time, the job gets a
    // notice.
    absl::Duration report_limit = absl::Minutes(2);
  };
  // Scheduler::ReleaseLease. Called on any thread.
  using ReleaseLease = std::function<void(const std::string& job_id, int32_t attempt)>;

  // `launcher` and `jobs` must outlive this object.
  ClusterJobs(Options options, Launcher* launcher, JobMachine* jobs);
  // Calls Stop.
  ~ClusterJobs() override;
  ClusterJobs(const ClusterJobs&) = delete;
  ClusterJobs& operator=(const ClusterJobs&) = delete;

  // Takes over an earlier daemon's attempts, and starts to observe. `jobs` are the jobs that have not ended;
  // jobs that are not on a cluster are ignored. Call before the scheduler starts.
  void Begin(const std::vector<v1::Job>& jobs, ReleaseLease release_lease);
  // Stops observing; attempts continue. Call after the scheduler was stopped and the listener was shut down.
  // Idempotent.
  void Stop();
  // Blocks until no attempt is left. Returns false after `timeout`.
  bool WaitUntilIdle(absl::Duration timeout);

  // Returns why a STARTING or stopping job waits for the cluster; nullopt if the job does not.
  std::optional<v1::Waiting> WaitingOf(const std::string& job_id);

  // WorkerStarter. Ignores `devices`.
  void Start(const v1::Job& job, const std::vector<v1::Device>& devices) override;

  // WorkerSessionHost.
  absl::Status Admit(const internal::v1::Hello& hello,
                     const std::shared_ptr<WorkerSession>& session) override;
  void BeforeApply(const std::string& job_id, int32_t attempt,
                   const std::vector<internal::v1::WorkerEvent>& events) override;
  void Leave(const std::string& job_id, const WorkerSession* session) override;

  // JobObserver.
  void OnMoved(const v1::Job& job) override;

 private:
  using Run = ClusterRun;
  using Runs = std::map<std::string, std::shared_ptr<Run>>;

  std::optional<v1::Waiting> WaitingOfRun(const Run& run) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time from the order to stop until the launcher ends the attempt. Before the training there is
  // nothing to write, and a worker that waits for another worker does not stop.
  absl::Duration GraceOf(const v1::Job& job) const {
    return job.has_lease_time() ? options_.cancel_grace : absl::ZeroDuration();
  }
  // Records the launcher's answer. An error means that the launcher gave no answer.
  void NoteAnswer(const absl::Status& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { wake_ = true; }
  bool Stopping();

  // Runs the thread.
  void Watch();
  void SubmitDue();
  // Returns whether another run was just refused because of a limit of jobs that also holds for this run. If
  // so, `run` waits for the same time: one refused submission answers for all of them.
  bool AwaitsLimit(Run* run) ABSL_LOCKS_EXCLUDED(mutex_);
  void Submit(const std::shared_ptr<Run>& run);
  // Finds an attempt that may have been started.
  void TakeOver(const std::shared_ptr<Run>& run);
  void Observe();
  // Records in the job where `seen`, the run's attempt, is. Adds `notice` to the job's log.
  void Record(Run& run, const LaunchedAttempt& seen, const std::string& notice);
  // The launcher's answer about a run; null if the answer lacks it.
  void Note(const std::shared_ptr<Run>& run, const LaunchedAttempt* seen);
  // Ends attempts that belong to no run of a job of this daemon.
  void CancelStray(const std::vector<LaunchedAttempt>& strays);
  void CancelDue();
  void SettleEnded();
  void Settle(const std::shared_ptr<Run>& run);
  // Forgets the run, and returns its lease.
  void Erase(const std::shared_ptr<Run>& run) ABSL_LOCKS_EXCLUDED(mutex_);
  // PublishAttemptFiles, by a single thread at a time.
  absl::Status Publish(const JobFolder& folder, int32_t attempt) ABSL_LOCKS_EXCLUDED(publish_mutex_);

  const Options options_;
  const LaunchPreparer preparer_;
  Launcher* const launcher_;
  JobMachine* const jobs_;
  ReleaseLease release_lease_;

  // Taken without mutex_.
  Mutex publish_mutex_;
  Mutex mutex_;
  // Keyed by job id.
  Runs runs_ ABSL_GUARDED_BY(mutex_);
  // Why the launcher gave no answer, and since when. Empty if it did.
  std::string away_ ABSL_GUARDED_BY(mutex_);
  absl::Time away_since_ ABSL_GUARDED_BY(mutex_);
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // The time of the last observation. For the thread.
  absl::Time observed_at_ = absl::InfinitePast();
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_CLUSTER_JOBS_H_
