#ifndef TANDEM_SERVER_JOBS_JOB_MACHINE_H_
#define TANDEM_SERVER_JOBS_JOB_MACHINE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// The only writer of jobs' states. Thread-safe.
//
// A change, its event and the job's record are committed in one transaction; then, on the store's writer
// thread and in this order, the event is published, observers are told, and `done` is called, which must not
// block. Methods that change something return at once. Any `done` may get UNAVAILABLE (the store was closed)
// or a database error (nothing was changed).
class JobMachine {
 public:
  template <typename T>
  using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // What a job is made of.
  struct NewJob {
    // Checked, defaults filled in.
    v1::JobSpec spec;
    // As the client sent it: what a repetition of the request is compared with.
    v1::JobSpec submitted_spec;
    // Empty: none.
    std::string request_id;
    // Of one replica.
    int64_t planned_memory_bytes = 0;
    // Of the whole training; an estimate.
    double planned_operations = 0;
    // Whose it is.
    std::string user = kAdminUser;
    // Jobs of the user that may be queued at a time; 0: any number.
    int max_queued_jobs = 0;
    // Where it goes on from another job's checkpoint: the id that Reserve gave, the checkpoint in its folder,
    // and whose that was.
    std::string reserved_id;
    v1::Checkpoint checkpoint;
    v1::CheckpointSource forked_from;
    // That step was asked for, rather than the newest: a repetition asks for it, too.
    bool is_step_given = false;
  };

  // What a sweep is made of.
  struct NewSweep {
    // Checked, defaults filled in; without a name and what follows from its jobs.
    v1::Sweep sweep;
    // As the client sent it: what a repetition of the request is compared with.
    v1::Sweep submitted;
    // Empty: none.
    std::string request_id;
    std::string user = kAdminUser;
    // As NewJob's.
    int max_queued_jobs = 0;
    // One of its jobs. Specs are serialised, for all of them together would take ten times as much as
    // messages.
    struct Part {
      // tandem.v1.JobSpec, as NewJob::spec.
      std::string spec;
      int64_t planned_memory_bytes = 0;
      double planned_operations = 0;
      std::vector<v1::SweepValue> values;
    };
    // In their order.
    std::vector<Part> jobs;
  };

  // What a worker is told.
  struct WorkerPosition {
    // All events up to this one are durable.
    int64_t worker_sequence = 0;
    // Where the job stands: CANCELLING tells the worker to stop, PAUSING and PREEMPTING to stop for now.
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  };

  // Job.folder is "<jobs_folder>/<id>". All pointers must outlive the machine; the store must be closed
  // before the machine goes.
  JobMachine(Store* store, EventHub* hub, const Clock* clock, std::string jobs_folder);
  JobMachine(const JobMachine&) = delete;
  JobMachine& operator=(const JobMachine&) = delete;

  // Before anything else is called: the most jobs of all users together that may be QUEUED; 0 is any number.
  // Jobs that wait again because they lost a worker or made room are let in whatever the limit.
  void SetMostQueued(int64_t most) { most_queued_ = most; }
  // How many jobs are QUEUED, those that are being committed included.
  int64_t queued_jobs() const { return queued_; }
  // RESOURCE_EXHAUSTED if so many more jobs, which are a sweep's if they are several, may not wait; with a
  // retry delay if they may fit later. Create, CreateSweep, Reserve and Resume ask once more in their
  // transactions.
  absl::Status CheckQueueLength(int64_t added) const;

  // Before anything else is called. `observer` must outlive the store's writer.
  void AddObserver(JobObserver* observer);

  // Makes a QUEUED job with event 1, or returns the job that this request id made before.
  // ALREADY_EXISTS: the request id was used by another user, or with another spec, or another checkpoint to
  // go on from. RESOURCE_EXHAUSTED: the user has, or all have, as many queued jobs as may be.
  void Create(NewJob job, Done<v1::Job> done);

  // An id for a job that may be made later, and that no other job gets. Until then it is one of a deleted
  // job: a folder that stands under it is removed when a daemon starts. RESOURCE_EXHAUSTED as Create.
  void Reserve(const NewJob& job, Done<std::string> done);
  // Forgets such an id, of which no job was made and no folder is left.
  void Release(const std::string& id);

  // The folder of a job of this id.
  std::string FolderOf(const std::string& id) const { return jobs_folder_ + "/" + id; }

  // Makes a sweep and all its jobs, QUEUED, or nothing; or returns the sweep that this request id made
  // before. Errors are those of Create.
  void CreateSweep(NewSweep sweep, Done<StoredSweep> done);

  // The sweep that this request id of the user's made before, where there is one. ALREADY_EXISTS: as
  // CreateSweep.
  absl::StatusOr<std::optional<StoredSweep>> FindRepeatedSweep(const std::string& user,
                                                               const std::string& request_id,
                                                               const v1::Sweep& submitted);

  // Cancels all of a sweep's jobs that have not ended, together; no change where they are CANCELLING.
  // NOT_FOUND: no such sweep. FAILED_PRECONDITION: all have ended, and it was not cancelled before.
  void CancelSweep(const std::string& id, Done<StoredSweep> done);

  // Removes a sweep and its jobs, together. NOT_FOUND: no such sweep. FAILED_PRECONDITION: one of them has
  // not ended.
  void DeleteSweep(const std::string& id, absl::AnyInvocable<void(absl::Status)> done);

  // The job that this request id of the user's made before, where there is one. ALREADY_EXISTS: as Create.
  absl::StatusOr<std::optional<v1::Job>> FindRepeated(const std::string& user, const std::string& request_id,
                                                      const v1::JobSpec& submitted_spec);

  // Stops a job: QUEUED and PAUSED become CANCELLED, STARTING, RUNNING and PAUSING become CANCELLING; no
  // change where it is CANCELLING or CANCELLED. `reason`: CANCEL_REQUESTED, SHUTDOWN or TIME_LIMIT_EXCEEDED.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: it has SUCCEEDED or FAILED.
  void Cancel(const std::string& id, v1::StateReason reason, Done<v1::Job> done);

  // Stops a job for now: QUEUED becomes PAUSED, STARTING, RUNNING and PREEMPTING become PAUSING; no change
  // where it is PAUSING or PAUSED. NOT_FOUND: no such job. FAILED_PRECONDITION: it has ended or is
  // CANCELLING.
  void Pause(const std::string& id, Done<v1::Job> done);

  // PAUSED and FAILED become QUEUED; no change where it is QUEUED, STARTING, RUNNING or PREEMPTING.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: it is PAUSING, CANCELLING, CANCELLED or SUCCEEDED.
  // RESOURCE_EXHAUSTED: its user has `max_queued_jobs` queued jobs, 0 is any number; or SetMostQueued's
  // limit.
  void Resume(const std::string& id, int max_queued_jobs, Done<v1::Job> done);

  // Has a job make room for another one: STARTING and RUNNING become PREEMPTING, and then QUEUED; no change
  // where it is PREEMPTING. `message` says for which. NOT_FOUND: no such job. FAILED_PRECONDITION: it is in
  // another state.
  void Preempt(const std::string& id, const std::string& message, Done<v1::Job> done);

  // Changes a job's priority, with an event; no change where it has it already. NOT_FOUND: no such job.
  // FAILED_PRECONDITION: it has ended.
  void SetPriority(const std::string& id, int priority, Done<v1::Job> done);

  // Adds a sentence to a job's log. NOT_FOUND: no such job. FAILED_PRECONDITION: it has ended.
  void AddNotice(const std::string& id, const std::string& message, Done<v1::Job> done);

  // Removes a job in a terminal state with its log; its folder is for an observer to remove.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: it has not ended.
  void Delete(const std::string& id, absl::AnyInvocable<void(absl::Status)> done);

  // QUEUED becomes STARTING on these devices ("devices/cpu:0", in the order of ranks); `done` gets the job,
  // whose attempt is one higher. NOT_FOUND: no such job. FAILED_PRECONDITION: it is not QUEUED.
  void Schedule(const std::string& id, std::vector<std::string> devices, Done<v1::Job> done);

  // STARTING becomes QUEUED again: for a worker that was never started and cannot be any more, as after a
  // crash of the daemon. NOT_FOUND: no such job. FAILED_PRECONDITION: the attempt is not the newest, the job
  // is not STARTING, or its worker has reported something.
  void Requeue(const std::string& id, int32_t attempt, Done<v1::Job> done);

  // Applies a worker's events, all or none, in their order: those that were applied before change nothing. No
  // events at all: only asks for the position, as a new stream does. NOT_FOUND: no such job.
  // FAILED_PRECONDITION: the worker must go: the attempt is not the newest, or the job has ended and an event
  // is new. OUT_OF_RANGE: a sequence number was left out. INVALID_ARGUMENT: an event has no kind, or one that
  // has no place in the job's state.
  void ApplyWorkerEvents(const std::string& id, int32_t attempt,
                         std::vector<internal::v1::WorkerEvent> events, Done<WorkerPosition> done);

  // The worker's process is gone, or could not be started. Where the job has not ended, it becomes QUEUED, to
  // be started again after a while, or FAILED with this reason and message (see LoseWorker), CANCELLED where
  // it was CANCELLING, PAUSED where it was PAUSING, or QUEUED where it was PREEMPTING. To be called when no
  // events of the worker can come any more. NOT_FOUND: no such job. FAILED_PRECONDITION: the attempt is not
  // the newest, or the job is QUEUED.
  void WorkerLost(const std::string& id, int32_t attempt, v1::StateReason reason, const std::string& message,
                  Done<v1::Job> done);

  // Before anything else is called: who says why queued jobs wait. `source` must outlive the store's writer.
  void SetWaitingSource(WaitingSource* source);

  // As Store's methods of these names, with `waiting` set where the job is QUEUED.
  absl::StatusOr<v1::Job> Get(const std::string& id);
  absl::StatusOr<JobPage> List(const JobQuery& query);
  // Jobs that have not ended, oldest first, without their specs.
  absl::StatusOr<std::vector<v1::Job>> NonTerminalJobs();
  // As Store's, without `waiting`.
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
  using ManyBody = absl::AnyInvocable<absl::Status(Transaction&, std::vector<JobChanges>&)>;
  using Written = absl::AnyInvocable<void(absl::Status, JobChanges&)>;

  // Has `body` make its changes in a transaction, then announces them, then calls `written`.
  void Write(Body body, Written written);
  // Write for several jobs, which are announced in their order. `body` packs the specs of those that it has
  // changed (JobChanges::PackSpec).
  void WriteAll(ManyBody body, absl::AnyInvocable<void(absl::Status)> written);
  // Adds a job, QUEUED with event 1, as `changes`.
  absl::Status Insert(Transaction& transaction, const NewJob& job, const v1::Job& sweep_part,
                      JobChanges* changes);
  // Gives the changed job to `done`.
  Written GiveJob(Done<v1::Job> done);
  void Announce(const JobChanges& changes);
  // With `may_look` what is said is up to date, which takes its time.
  void SetWaitingOf(v1::Job* job, bool may_look);

  Store* const store_;
  EventHub* const hub_;
  const Clock* const clock_;
  const std::string jobs_folder_;
  LeaseTimes leases_;
  int64_t most_queued_ = 0;
  // Changed by the store's writer thread alone, as soon as a body has made its changes: bodies that come
  // after it may be committed with it.
  std::atomic<int64_t> queued_ = 0;
  std::vector<JobObserver*> observers_;
  WaitingSource* waiting_ = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_JOB_MACHINE_H_
