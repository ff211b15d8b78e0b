#ifndef TANDEM_SERVER_JOBS_JOB_MACHINE_H_
#define TANDEM_SERVER_JOBS_JOB_MACHINE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_observer.h"
#include "server/jobs/lease_times.h"
#include "server/jobs/waiting_source.h"
#include "server/store/store.h"
#include "tandem/internal/v1/worker.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

struct JobChanges;
class JobEdit;

// The longest time before a job that lost its worker restarts.
inline constexpr absl::Duration kLongestRestartDelay = absl::Seconds(300);

// The only writer of jobs' states. Thread-safe.
//
// Commits a change, its event and the job's record in one transaction. Then, on the store's writer thread and
// in this order: publishes the event, notifies the observers, and calls `done`, which must not block. Methods
// that change something return at once. Any `done` may get UNAVAILABLE (the store was closed) or a database
// error (nothing changed).
class JobMachine {
 public:
  template <typename T>
  using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // The contents of a new job.
  struct NewJob {
    // Checked, with all defaults.
    v1::JobSpec spec;
    // As the client sent it. Compared with a repeated request.
    v1::JobSpec submitted_spec;
    // Empty: none.
    std::string request_id;
    // The planned memory of one replica.
    int64_t planned_memory_bytes = 0;
    // An estimate of the whole training's floating-point operations.
    double planned_operations = 0;
    // The job's owner.
    std::string user = kAdminUser;
    // The most QUEUED jobs of the user. 0: no limit.
    int max_queued_jobs = 0;
    // The id from Reserve, for a job with files from before its creation. Empty: a new id.
    std::string reserved_id;
    // For a job that continues another job's checkpoint: the checkpoint in the new job's folder, and the
    // checkpoint's source. Needs a reserved id.
    v1::Checkpoint checkpoint;
    v1::CheckpointSource forked_from;
    // True if the request named the step. A repeated request must then name the same step.
    bool is_step_given = false;
  };

  // The contents of a new sweep.
  struct NewSweep {
    // Checked, with all defaults. Without a name and without the fields that its jobs determine.
    v1::Sweep sweep;
    // As the client sent it. Compared with a repeated request.
    v1::Sweep submitted;
    // Empty: none.
    std::string request_id;
    std::string user = kAdminUser;
    // As in NewJob.
    int max_queued_jobs = 0;
    // A job of the sweep. Its spec is serialized, because unpacked specs would need ten times the memory.
    struct Part {
      // A serialized tandem.v1.JobSpec, as NewJob::spec.
      std::string spec;
      int64_t planned_memory_bytes = 0;
      double planned_operations = 0;
      std::vector<v1::SweepValue> values;
      // As in NewJob.
      std::string reserved_id = {};
    };
    // In the sweep's order.
    std::vector<Part> jobs;
  };

  // The answer to a worker.
  struct WorkerPosition {
    // All events up to this sequence number are durable.
    int64_t worker_sequence = 0;
    // The job's state. CANCELLING tells the worker to stop. PAUSING and PREEMPTING tell the worker to write a
    // checkpoint and stop.
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  };

  // Job.folder is "<jobs_folder>/<id>". All pointers must outlive the machine. Close the store before
  // destroying the machine.
  JobMachine(Store* store, EventHub* hub, const Clock* clock, std::string jobs_folder);
  JobMachine(const JobMachine&) = delete;
  JobMachine& operator=(const JobMachine&) = delete;

  // Sets the most QUEUED jobs of all users together; 0: no limit. Jobs that return to the queue after a lost
  // worker or a preemption ignore the limit. Call before any other method.
  void SetMostQueued(int64_t most) { most_queued_ = most; }
  // Returns the number of QUEUED jobs, including jobs that are being committed.
  int64_t queued_jobs() const { return queued_; }
  // RESOURCE_EXHAUSTED if `added` more jobs exceed the limit. Several jobs count as a sweep. The error has a
  // retry delay if the jobs may fit later. Create, CreateSweep, Reserve and Resume check again in their
  // transactions.
  absl::Status CheckQueueLength(int64_t added) const;

  // Call before any other method. `observer` must outlive the store's writer.
  void AddObserver(JobObserver* observer);

  // Creates a QUEUED job with event 1, or returns the job of an earlier request with this request id.
  // ALREADY_EXISTS: the earlier request had another user, spec or checkpoint. RESOURCE_EXHAUSTED: the user's
  // or all users' limit of queued jobs is reached.
  void Create(NewJob job, Done<v1::Job> done);

  // Reserves the id of a job that may be created later. No other job gets the id. Until the creation, a
  // folder with this id counts as a deleted job's, and the next daemon's start removes it. RESOURCE_EXHAUSTED
  // as Create.
  void Reserve(const NewJob& job, Done<std::string> done);
  // Releases a reserved id that has neither job nor folder.
  void Release(const std::string& id);

  // Returns the folder of the job with this id.
  std::string FolderOf(const std::string& id) const { return jobs_folder_ + "/" + id; }

  // Creates a sweep and all its jobs, QUEUED, or nothing. Returns the sweep of an earlier request with this
  // request id. Errors as Create.
  void CreateSweep(NewSweep sweep, Done<StoredSweep> done);

  // Returns the sweep of the user's earlier request with this request id; nullopt if none. ALREADY_EXISTS as
  // CreateSweep.
  absl::StatusOr<std::optional<StoredSweep>> FindRepeatedSweep(const std::string& user,
                                                               const std::string& request_id,
                                                               const v1::Sweep& submitted);

  // Cancels all jobs of a sweep that have not ended, in one transaction. Jobs that are CANCELLING do not
  // change. NOT_FOUND: no such sweep. FAILED_PRECONDITION: all jobs have ended, and the sweep was not
  // cancelled before.
  void CancelSweep(const std::string& id, Done<StoredSweep> done);

  // Deletes a sweep and its jobs in one transaction. NOT_FOUND: no such sweep. FAILED_PRECONDITION: a job has
  // not ended.
  void DeleteSweep(const std::string& id, absl::AnyInvocable<void(absl::Status)> done);

  // Returns the job of the user's earlier request with this request id; nullopt if none. ALREADY_EXISTS as
  // Create. `forked_from` and `is_step_given` as in NewJob.
  absl::StatusOr<std::optional<v1::Job>> FindRepeated(
      const std::string& user, const std::string& request_id, const v1::JobSpec& submitted_spec,
      const v1::CheckpointSource& forked_from = v1::CheckpointSource(), bool is_step_given = false);

  // Stops a job. QUEUED and PAUSED become CANCELLED. STARTING, RUNNING, PAUSING and PREEMPTING become
  // CANCELLING. CANCELLING and CANCELLED stay. `reason` is CANCEL_REQUESTED, SHUTDOWN or TIME_LIMIT_EXCEEDED.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: the job has SUCCEEDED or FAILED.
  void Cancel(const std::string& id, v1::StateReason reason, Done<v1::Job> done);

  // Stops a job that is worse than others of its sweep: RUNNING becomes CANCELLING, with the reason PRUNED.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: the job is in another state.
  void Prune(const std::string& id, const std::string& message, Done<v1::Job> done);

  // Pauses a job. QUEUED becomes PAUSED. STARTING, RUNNING and PREEMPTING become PAUSING. PAUSING and PAUSED
  // stay. NOT_FOUND: no such job. FAILED_PRECONDITION: the job has ended or is CANCELLING.
  void Pause(const std::string& id, Done<v1::Job> done);

  // Resumes a job. PAUSED and FAILED become QUEUED. QUEUED, STARTING, RUNNING and PREEMPTING stay. NOT_FOUND:
  // no such job. FAILED_PRECONDITION: the job is PAUSING, CANCELLING, CANCELLED or SUCCEEDED.
  // RESOURCE_EXHAUSTED: the user has `max_queued_jobs` queued jobs (0: no limit), or SetMostQueued's limit is
  // reached.
  void Resume(const std::string& id, int max_queued_jobs, Done<v1::Job> done);

  // Makes a job give its devices to another job. STARTING and RUNNING become PREEMPTING, and later QUEUED.
  // PREEMPTING stays. `message` is the message of the state change. NOT_FOUND: no such job.
  // FAILED_PRECONDITION: the job is in another state.
  void Preempt(const std::string& id, const std::string& message, Done<v1::Job> done);

  // Changes a job's priority, with an event. Does nothing if the priority is the same. NOT_FOUND: no such
  // job. FAILED_PRECONDITION: the job has ended.
  void SetPriority(const std::string& id, int priority, Done<v1::Job> done);

  // Adds a notice to a job's log. NOT_FOUND: no such job. FAILED_PRECONDITION: the job has ended.
  void AddNotice(
      const std::string& id, const std::string& message,
      Done<v1::Job> done = [](const absl::StatusOr<v1::Job>&) {});

  // Sets Job.cluster_attempt. Adds `notice` to the job's log, unless the job has ended. NOT_FOUND: no such
  // job. FAILED_PRECONDITION: `attempt` is not the newest.
  void SetClusterAttempt(
      const std::string& id, int32_t attempt, const v1::ClusterAttempt& cluster_attempt,
      const std::string& notice, Done<v1::Job> done = [](const absl::StatusOr<v1::Job>&) {});

  // Deletes a job in a terminal state, with its log. An observer removes its folder. NOT_FOUND: no such job.
  // FAILED_PRECONDITION: the job has not ended.
  void Delete(const std::string& id, absl::AnyInvocable<void(absl::Status)> done);

  // Starts a job: QUEUED becomes STARTING on these devices ("devices/cpu:0", in the order of ranks). Without
  // devices, a cluster starts the job. `done` gets the job with the next attempt number. NOT_FOUND: no such
  // job. FAILED_PRECONDITION: the job is not QUEUED.
  void Schedule(const std::string& id, std::vector<std::string> devices, Done<v1::Job> done);

  // Returns a job to the queue: STARTING becomes QUEUED. For a worker that never started and never will, for
  // example after a crash of the daemon. NOT_FOUND: no such job. FAILED_PRECONDITION: the attempt is not the
  // newest, the job is not STARTING, or its worker has reported something.
  void Requeue(const std::string& id, int32_t attempt, Done<v1::Job> done);

  // Applies a worker's events in order, all or none. Events that were applied before change nothing. The list
  // may be empty. NOT_FOUND: no such job. FAILED_PRECONDITION: the worker must exit, because the attempt is
  // not the newest, or because the job has stopped and an event is new. OUT_OF_RANGE: a sequence number is
  // missing. INVALID_ARGUMENT: an event has no kind, or the job's state does not allow it.
  void ApplyWorkerEvents(const std::string& id, int32_t attempt,
                         std::vector<internal::v1::WorkerEvent> events, Done<WorkerPosition> done);
  // Returns the position of a worker with a new stream. Errors as ApplyWorkerEvents.
  void AskWorkerPosition(const std::string& id, int32_t attempt, Done<WorkerPosition> done) {
    ApplyWorkerEvents(id, attempt, {}, std::move(done));
  }

  // Reports that the worker's process ended or could not be started. Call only when no more events of the
  // worker can arrive. A job that has not ended becomes QUEUED, and starts again after a delay, or FAILED
  // with `reason` and `message` (see LoseWorker). CANCELLING becomes CANCELLED, PAUSING becomes PAUSED, and
  // PREEMPTING becomes QUEUED. NOT_FOUND: no such job. FAILED_PRECONDITION: the attempt is not the newest, or
  // the job is QUEUED.
  void WorkerLost(const std::string& id, int32_t attempt, v1::StateReason reason, const std::string& message,
                  Done<v1::Job> done);

  // Sets the source of waiting reasons. Call before any other method. `source` must outlive the store's
  // writer.
  void SetWaitingSource(WaitingSource* source);

  // Like Store's methods of the same names, with `waiting` set for QUEUED jobs.
  absl::StatusOr<v1::Job> Get(const std::string& id);
  absl::StatusOr<JobPage> List(const JobQuery& query);
  // Returns the jobs that have not ended, oldest first, without their specs.
  absl::StatusOr<std::vector<v1::Job>> NonTerminalJobs();
  // Like Store's method, without `waiting`.
  absl::Status VisitNonTerminalJobs(absl::FunctionRef<void(v1::Job)> visit);
  absl::StatusOr<std::vector<v1::Checkpoint>> Checkpoints(const std::string& id) {
    return store_->Checkpoints(id);
  }
  absl::StatusOr<int64_t> VisitEvents(const std::string& id, int64_t after_sequence, int limit,
                                      absl::FunctionRef<bool(const v1::JobEvent&)> visit) {
    return store_->VisitEvents(id, after_sequence, limit, visit);
  }
  absl::StatusOr<StoredSweep> GetSweep(const std::string& id) { return store_->GetSweep(id); }
  absl::StatusOr<SweepPage> ListSweeps(int64_t before, int limit, int64_t most_jobs = kMostListedJobs) {
    return store_->ListSweeps(before, limit, most_jobs);
  }
  absl::StatusOr<bool> WasDeleted(const std::string& id) { return store_->WasDeleted(id); }

 private:
  using Body = absl::AnyInvocable<absl::Status(Transaction&, JobChanges&)>;
  using Edit = absl::AnyInvocable<absl::Status(Transaction&, JobChanges&, JobEdit&)>;
  using ManyBody = absl::AnyInvocable<absl::Status(Transaction&, std::vector<JobChanges>&)>;
  using Written = absl::AnyInvocable<void(absl::Status, JobChanges&)>;

  // Runs `body` in a transaction, announces its changes, then calls `written`.
  void Write(Body body, Written written);
  // Like Write, for several jobs, which are announced in order. `body` must pack the spec of each changed job
  // (JobChanges::PackSpec).
  void WriteAll(ManyBody body, absl::AnyInvocable<void(absl::Status)> written);
  // Adds a QUEUED job with event 1 to the transaction and to `changes`.
  absl::Status Insert(Transaction& transaction, const NewJob& job, const v1::Job& sweep_part,
                      JobChanges* changes);
  // Loads the job and runs `edit` in a transaction, then gives the changed job to `done`. Stores the job if
  // `edit` added an event. NOT_FOUND if no such job exists.
  void EditJob(const std::string& id, Done<v1::Job> done, Edit edit);
  // Returns a function that gives the changed job to `done`.
  Written GiveJob(Done<v1::Job> done);
  void Announce(const JobChanges& changes);
  // Sets `waiting` of a QUEUED job, and of a job that waits for its cluster. `may_look` as
  // WaitingSource::WaitingOf.
  void SetWaitingOf(v1::Job* job, bool may_look);

  Store* const store_;
  EventHub* const hub_;
  const Clock* const clock_;
  const std::string jobs_folder_;
  LeaseTimes leases_;
  int64_t most_queued_ = 0;
  // Only the store's writer thread changes it, at the end of each body: later bodies may be in the same
  // commit.
  std::atomic<int64_t> queued_ = 0;
  std::vector<JobObserver*> observers_;
  WaitingSource* waiting_ = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_MACHINE_H_
