#include "server/jobs/job_machine.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/env.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/jobs/job_edit.h"
#include "server/jobs/new_job.h"
#include "server/jobs/refusal.h"
#include "server/jobs/worker_events.h"
#include "server/jobs/worker_loss.h"
#include "server/store/request_owner.h"
#include "server/store/timestamps.h"

namespace tandem {
namespace {

using google::protobuf::Timestamp;

// ALREADY_EXISTS if the request was another user's, for another spec or from another checkpoint.
absl::Status CheckRepeated(const StoredRequest& known, const std::string& user, const std::string& request_id,
                           const v1::JobSpec& submitted_spec, const v1::CheckpointSource& forked_from,
                           bool is_step_given) {
  const v1::Job& job = known.job.job;
  TANDEM_RETURN_IF_ERROR(CheckRequestOwner(request_id, job.user(), user));
  const bool same_spec =
      google::protobuf::util::MessageDifferencer::Equals(known.submitted_spec, submitted_spec);
  const bool same_source = job.forked_from().job() == forked_from.job() &&
                           (!is_step_given || job.forked_from().step() == forked_from.step());
  if (same_spec && same_source) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("request_id: \"", request_id, "\" was already used for another ",
                   same_spec ? "request" : "spec", ", of \"", job.name(), "\"; use a new one for a new job"));
}

}  // namespace

JobMachine::JobMachine(Store* store, EventHub* hub, const Clock* clock, std::string jobs_folder)
    : store_(store), hub_(hub), clock_(clock), jobs_folder_(std::move(jobs_folder)), leases_(clock) {
  // Begin the leases of an earlier daemon. If the jobs cannot be read, their held time later comes from the
  // wall clock.
  const absl::StatusOr<std::vector<StoredJob>> jobs = store_->NonTerminalJobs();
  if (!jobs.ok()) return;
  for (const StoredJob& stored : *jobs) {
    if (stored.job.state() == v1::JOB_STATE_QUEUED) ++queued_;
    if (IsHolding(stored.job.state()) && stored.job.has_lease_time()) leases_.Begin(stored.job);
  }
}

absl::Status JobMachine::CheckQueueLength(int64_t added) const {
  return tandem::CheckQueueLength(queued_, added, most_queued_);
}

void JobMachine::AddObserver(JobObserver* observer) { observers_.push_back(observer); }

void JobMachine::SetWaitingSource(WaitingSource* source) { waiting_ = source; }

void JobMachine::Write(Body body, Written written) {
  auto changes = std::make_shared<JobChanges>(&leases_);
  auto counted = std::make_shared<int>(0);
  store_->Write(
      [this, changes, counted, body = std::move(body)](Transaction& transaction) mutable {
        absl::Status made = body(transaction, *changes);
        if (made.ok()) *counted = changes->queued;
        queued_ += *counted;
        return made;
      },
      [this, changes, counted, written = std::move(written)](absl::Status status) mutable {
        if (status.ok()) {
          Announce(*changes);
        } else {
          queued_ -= *counted;
        }
        written(std::move(status), *changes);
      });
}

JobMachine::Written JobMachine::GiveJob(Done<v1::Job> done) {
  return [this, done = std::move(done)](absl::Status status, JobChanges& changes) mutable {
    if (!status.ok()) return done(std::move(status));
    SetWaitingOf(&changes.job.job, /*may_look=*/false);
    done(std::move(changes.job.job));
  };
}

void JobMachine::Announce(const JobChanges& changes) {
  const v1::Job& job = changes.job.job;
  if (changes.deleted) {
    leases_.Remove(job.name());
  } else if (changes.moved && !IsHolding(job.state())) {
    leases_.Forget(job);
  }
  if (changes.deleted) {
    hub_->PublishDeleted(JobId(job.name()));
    for (JobObserver* observer : observers_) observer->OnDeleted(job);
    return;
  }
  const std::string id = JobId(job.name());
  for (const auto& event : changes.events) hub_->Publish(id, event);
  for (const auto& change : changes.changes) hub_->PublishChange(change);
  for (const auto& event : changes.events) {
    for (JobObserver* observer : observers_) observer->OnEvent(*event);
  }
  if (!changes.moved) return;
  for (JobObserver* observer : observers_) observer->OnMoved(job);
}

absl::Status JobMachine::Insert(Transaction& transaction, const NewJob& job, const v1::Job& sweep_part,
                                JobChanges* changes) {
  const Timestamp now = TimestampOf(clock_->Now());
  v1::Job& made = changes->job.job;
  made = sweep_part;
  made.set_user(job.user);
  made.set_priority(job.spec.priority());
  made.set_planned_operations(job.planned_operations);
  *made.mutable_spec() = job.spec;
  *made.mutable_create_time() = now;
  made.set_planned_memory_bytes(job.planned_memory_bytes);
  const bool is_reserved = !job.reserved_id.empty();
  const bool is_fork = !job.forked_from.job().empty();
  if (is_fork) {
    *made.mutable_last_checkpoint() = job.checkpoint;
    *made.mutable_forked_from() = job.forked_from;
  }
  absl::Status inserted;
  for (int i = 0; i < (is_reserved ? 1 : kIdAttempts); ++i) {
    const std::string id = is_reserved ? job.reserved_id : NewId(job.spec.name(), "job");
    made.set_name(JobName(id));
    made.set_folder(FolderOf(id));
    inserted = transaction.InsertJob(&changes->job, job.request_id, job.submitted_spec);
    if (!absl::IsAlreadyExists(inserted)) break;
  }
  TANDEM_RETURN_IF_ERROR(inserted);
  if (is_fork) {
    TANDEM_RETURN_IF_ERROR(
        transaction.PutCheckpoint(changes->job, job.checkpoint, /*keep_last=*/1, /*keep_best=*/false));
  }
  JobEdit edit(&transaction, changes);
  TANDEM_RETURN_IF_ERROR(edit.Begin(now));
  return edit.Finish();
}

void JobMachine::Create(NewJob job, Done<v1::Job> done) {
  Write(
      [this, job = std::move(job)](Transaction& transaction, JobChanges& changes) -> absl::Status {
        if (!job.request_id.empty()) {
          TANDEM_ASSIGN_OR_RETURN(std::optional<StoredRequest> known,
                                  transaction.FindRequest(job.request_id));
          if (known.has_value()) {
            TANDEM_RETURN_IF_ERROR(CheckRepeated(*known, job.user, job.request_id, job.submitted_spec,
                                                 job.forked_from, job.is_step_given));
            changes.job = std::move(known->job);
            return absl::OkStatus();
          }
        }
        TANDEM_RETURN_IF_ERROR(CheckQueuedJobs(&transaction, job.user, /*added=*/1, job.max_queued_jobs));
        TANDEM_RETURN_IF_ERROR(CheckQueueLength(1));
        return Insert(transaction, job, v1::Job(), &changes);
      },
      GiveJob(std::move(done)));
}

void JobMachine::Reserve(const NewJob& job, Done<std::string> done) {
  auto id = std::make_shared<std::string>();
  store_->Write(
      [this, id, name = job.spec.name(), user = job.user,
       most = job.max_queued_jobs](Transaction& transaction) -> absl::Status {
        // Refuse early if Create would refuse.
        TANDEM_RETURN_IF_ERROR(CheckQueuedJobs(&transaction, user, /*added=*/1, most));
        TANDEM_RETURN_IF_ERROR(CheckQueueLength(1));
        absl::Status reserved;
        for (int i = 0; i < kIdAttempts; ++i) {
          *id = NewId(name, "job");
          reserved = transaction.ReserveJobId(*id);
          if (!absl::IsAlreadyExists(reserved)) break;
        }
        return reserved;
      },
      [id, done = std::move(done)](absl::Status status) mutable {
        if (!status.ok()) return done(std::move(status));
        done(*std::move(id));
      });
}

void JobMachine::Release(const std::string& id) {
  // If this fails, the id stays reserved for ever, which does no harm.
  store_->Write([id](Transaction& transaction) { return transaction.ReleaseJobId(id); },
                [](const absl::Status&) {});
}

absl::StatusOr<std::optional<v1::Job>> JobMachine::FindRepeated(const std::string& user,
                                                                const std::string& request_id,
                                                                const v1::JobSpec& submitted_spec,
                                                                const v1::CheckpointSource& forked_from,
                                                                bool is_step_given) {
  TANDEM_ASSIGN_OR_RETURN(std::optional<StoredRequest> known, store_->FindRequest(request_id));
  if (!known.has_value()) return std::optional<v1::Job>();
  TANDEM_RETURN_IF_ERROR(CheckRepeated(*known, user, request_id, submitted_spec, forked_from, is_step_given));
  SetWaitingOf(&known->job.job, /*may_look=*/true);
  return std::optional<v1::Job>(std::move(known->job.job));
}

void JobMachine::EditJob(const std::string& id, Done<v1::Job> done, Edit edit) {
  Write(
      [id, edit = std::move(edit)](Transaction& transaction, JobChanges& changes) mutable -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(changes.job, transaction.GetJob(id));
        JobEdit job_edit(&transaction, &changes);
        TANDEM_RETURN_IF_ERROR(edit(transaction, changes, job_edit));
        return changes.events.empty() ? absl::OkStatus() : job_edit.Finish();
      },
      GiveJob(std::move(done)));
}

void JobMachine::Cancel(const std::string& id, v1::StateReason reason, Done<v1::Job> done) {
  EditJob(id, std::move(done), [this, reason](Transaction&, JobChanges& changes, JobEdit& edit) {
    const std::string message = reason == v1::STATE_REASON_SHUTDOWN
                                    ? "Cancelled, because the daemon shuts down with its jobs."
                                : reason == v1::STATE_REASON_TIME_LIMIT_EXCEEDED
                                    ? absl::StrCat("It reached its time limit of ",
                                                   changes.job.job.spec().time_limit_seconds(), " s.")
                                    : "A user cancelled it.";
    return edit.Take(Trigger::kCancel, reason, message, TimestampOf(clock_->Now()));
  });
}

void JobMachine::Prune(const std::string& id, const std::string& message, Done<v1::Job> done) {
  EditJob(id, std::move(done),
          [this, message](Transaction&, JobChanges& changes, JobEdit& edit) -> absl::Status {
            const v1::Job& job = changes.job.job;
            if (job.state() != v1::JOB_STATE_RUNNING) {
              return absl::FailedPreconditionError(
                  absl::StrCat("cannot prune the job \"", job.name(), "\": it is ", StateName(job.state())));
            }
            return edit.Take(Trigger::kCancel, v1::STATE_REASON_PRUNED, message, TimestampOf(clock_->Now()));
          });
}

void JobMachine::Pause(const std::string& id, Done<v1::Job> done) {
  EditJob(id, std::move(done), [this](Transaction&, JobChanges& changes, JobEdit& edit) {
    const bool waits = changes.job.job.state() == v1::JOB_STATE_QUEUED;
    return edit.Take(Trigger::kPause, v1::STATE_REASON_PAUSE_REQUESTED,
                     waits ? "A user paused it while it was waiting." : "A user paused it.",
                     TimestampOf(clock_->Now()));
  });
}

namespace {

// Returns the step of the newest checkpoint in a job's folder, as its worker would find it. 0 if there is
// none.
absl::StatusOr<int64_t> NewestCheckpoint(const std::string& folder) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListCheckpointFiles(Env::Real(), folder));
  return files.empty() ? 0 : StepOfCheckpointFile(files.front());
}

// Says where a resumed job continues. The checkpoint in its record may be gone.
std::string WhereItGoesOn(const v1::Job& job, const absl::StatusOr<int64_t>& newest) {
  const int64_t known = job.last_checkpoint().step();
  const int64_t step = newest.value_or(known);
  const std::string gone =
      step < known ? absl::StrCat("Its checkpoint of step ", known, " is gone, so it ") : "";
  if (step > 0) {
    return gone.empty() ? absl::StrCat("It continues from its checkpoint of step ", step, ".")
                        : absl::StrCat(gone, "continues from its checkpoint of step ", step, ".");
  }
  if (!gone.empty()) return absl::StrCat(gone, "starts from the beginning.");
  if (job.attempt() > 0) return "It has no checkpoint, so it starts from the beginning.";
  return job.spec().has_cluster() ? "It waits for its cluster." : "It waits for devices.";
}

}  // namespace

void JobMachine::Resume(const std::string& id, int max_queued_jobs, Done<v1::Job> done) {
  const absl::StatusOr<int64_t> newest = NewestCheckpoint(FolderOf(id));
  EditJob(id, std::move(done),
          [this, max_queued_jobs, newest](Transaction& transaction, JobChanges& changes,
                                          JobEdit& edit) -> absl::Status {
            v1::Job& job = changes.job.job;
            TANDEM_RETURN_IF_ERROR(edit.Take(Trigger::kResume, v1::STATE_REASON_RESUMED,
                                             absl::StrCat("Resumed. ", WhereItGoesOn(job, newest)),
                                             TimestampOf(clock_->Now())));
            if (!changes.moved) return absl::OkStatus();
            TANDEM_RETURN_IF_ERROR(CheckQueuedJobs(&transaction, job.user(), /*added=*/1, max_queued_jobs));
            TANDEM_RETURN_IF_ERROR(CheckQueueLength(1));
            job.clear_devices();
            job.clear_restarts();
            return absl::OkStatus();
          });
}

void JobMachine::Preempt(const std::string& id, const std::string& message, Done<v1::Job> done) {
  EditJob(id, std::move(done), [this, message](Transaction&, JobChanges&, JobEdit& edit) {
    return edit.Take(Trigger::kPreempt, v1::STATE_REASON_PREEMPTED, message, TimestampOf(clock_->Now()));
  });
}

void JobMachine::SetPriority(const std::string& id, int priority, Done<v1::Job> done) {
  EditJob(id, std::move(done),
          [this, priority](Transaction&, JobChanges& changes, JobEdit& edit) -> absl::Status {
            v1::Job& job = changes.job.job;
            if (IsTerminal(job.state())) {
              return WithReason(
                  absl::FailedPreconditionError(absl::StrCat(
                      "cannot change the job \"", job.name(), "\": it is ", StateName(job.state()),
                      ", and only a job that has not ended can be changed")),
                  "JOB_HAS_ENDED");
            }
            if (job.priority() == priority) return absl::OkStatus();
            v1::JobEvent event;
            event.mutable_priority_change()->set_from(job.priority());
            event.mutable_priority_change()->set_to(priority);
            job.set_priority(priority);
            return edit.Append(std::move(event), TimestampOf(clock_->Now()));
          });
}

void JobMachine::AddNotice(const std::string& id, const std::string& message, Done<v1::Job> done) {
  EditJob(id, std::move(done),
          [this, message](Transaction&, JobChanges& changes, JobEdit& edit) -> absl::Status {
            const v1::Job& job = changes.job.job;
            if (IsTerminal(job.state())) {
              return absl::FailedPreconditionError(absl::StrCat(
                  "cannot add a notice to the job \"", job.name(), "\": it is ", StateName(job.state())));
            }
            v1::JobEvent event;
            event.mutable_notice()->set_message(message);
            return edit.Append(std::move(event), TimestampOf(clock_->Now()));
          });
}

void JobMachine::SetClusterAttempt(const std::string& id, int32_t attempt,
                                   const v1::ClusterAttempt& cluster_attempt, const std::string& notice,
                                   Done<v1::Job> done) {
  Write(
      [this, id, attempt, cluster_attempt, notice](Transaction& transaction,
                                                   JobChanges& changes) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(changes.job, transaction.GetJob(id));
        v1::Job& job = changes.job.job;
        TANDEM_RETURN_IF_ERROR(CheckAttempt(job, attempt));
        *job.mutable_cluster_attempt() = cluster_attempt;
        JobEdit edit(&transaction, &changes);
        if (!IsTerminal(job.state())) {
          v1::JobEvent event;
          event.mutable_notice()->set_message(notice);
          TANDEM_RETURN_IF_ERROR(edit.Append(std::move(event), TimestampOf(clock_->Now())));
        }
        return edit.Finish();
      },
      GiveJob(std::move(done)));
}

void JobMachine::Delete(const std::string& id, absl::AnyInvocable<void(absl::Status)> done) {
  Write(
      [id](Transaction& transaction, JobChanges& changes) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(changes.job, transaction.GetJob(id));
        const v1::JobState state = changes.job.job.state();
        if (NextState(state, Trigger::kDelete).outcome == Transition::Outcome::kRefuse) {
          return RefuseTrigger(changes.job.job, Trigger::kDelete);
        }
        changes.deleted = true;
        return transaction.DeleteJob(changes.job);
      },
      [this, done = std::move(done)](absl::Status status, JobChanges&) mutable {
        if (status.ok()) store_->RemoveDeleted();
        done(std::move(status));
      });
}

void JobMachine::Schedule(const std::string& id, std::vector<std::string> devices, Done<v1::Job> done) {
  EditJob(id, std::move(done),
          [this, devices = std::move(devices)](Transaction&, JobChanges& changes, JobEdit& edit) {
            v1::Job& job = changes.job.job;
            // Raise the attempt first, so that the event has the new number. A refusal undoes both.
            job.set_attempt(job.attempt() + 1);
            changes.job.last_worker_sequence = 0;
            job.mutable_devices()->Assign(devices.begin(), devices.end());
            job.clear_cluster_attempt();
            return edit.Take(Trigger::kSchedule, v1::STATE_REASON_SCHEDULED,
                             devices.empty() ? "Waits for its cluster."
                                             : absl::StrCat("Starts on ", absl::StrJoin(devices, ", "), "."),
                             TimestampOf(clock_->Now()));
          });
}

void JobMachine::Requeue(const std::string& id, int32_t attempt, Done<v1::Job> done) {
  EditJob(id, std::move(done),
          [this, attempt](Transaction&, JobChanges& changes, JobEdit& edit) -> absl::Status {
            v1::Job& job = changes.job.job;
            TANDEM_RETURN_IF_ERROR(CheckAttempt(job, attempt));
            if (changes.job.last_worker_sequence != 0) {
              return absl::FailedPreconditionError(absl::StrCat("cannot queue the job \"", job.name(),
                                                                "\" again: attempt ", attempt,
                                                                " reported events, so it did start"));
            }
            job.clear_devices();
            // The job used its devices for nothing.
            job.clear_lease_time();
            return edit.Take(Trigger::kRequeue, v1::STATE_REASON_REQUEUED,
                             "Its worker was not started, so it waits again.", TimestampOf(clock_->Now()));
          });
}

void JobMachine::ApplyWorkerEvents(const std::string& id, int32_t attempt,
                                   std::vector<internal::v1::WorkerEvent> events, Done<WorkerPosition> done) {
  Write(
      [this, id, attempt, events = std::move(events)](Transaction& transaction,
                                                      JobChanges& changes) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(changes.job, transaction.GetJobWithoutSpec(id));
        return ApplyEvents(&transaction, attempt, events, TimestampOf(clock_->Now()), &changes);
      },
      [done = std::move(done)](absl::Status status, JobChanges& changes) mutable {
        if (!status.ok()) return done(std::move(status));
        done(WorkerPosition{changes.job.last_worker_sequence, changes.job.job.state()});
      });
}

void JobMachine::WorkerLost(const std::string& id, int32_t attempt, v1::StateReason reason,
                            const std::string& message, Done<v1::Job> done) {
  EditJob(id, std::move(done),
          [this, attempt, reason, message](Transaction& transaction, JobChanges& changes,
                                           JobEdit&) -> absl::Status {
            TANDEM_RETURN_IF_ERROR(CheckAttempt(changes.job.job, attempt));
            const Timestamp now = TimestampOf(clock_->Now());
            return LoseWorker(&transaction, {.reason = reason, .message = message, .time = now}, now,
                              &changes);
          });
}

void JobMachine::SetWaitingOf(v1::Job* job, bool may_look) {
  job->clear_waiting();
  // A cluster may not have started or stopped the attempt yet. A job without its spec is not known to be on a
  // cluster.
  const bool is_changing = job->state() == v1::JOB_STATE_STARTING ||
                           job->state() == v1::JOB_STATE_CANCELLING || IsToStopForNow(job->state());
  const bool may_wait_in_cluster = is_changing && job->devices().empty();
  if (job->state() != v1::JOB_STATE_QUEUED && !may_wait_in_cluster) return;
  std::optional<v1::Waiting> waiting;
  if (waiting_ != nullptr) waiting = waiting_->WaitingOf(JobId(job->name()), may_look);
  if (may_wait_in_cluster && !waiting.has_value()) return;
  if (waiting.has_value()) {
    *job->mutable_waiting() = *std::move(waiting);
    return;
  }
  job->mutable_waiting()->set_reason(v1::Waiting::REASON_NOT_YET_CONSIDERED);
  job->mutable_waiting()->set_message("The scheduler has not looked at it yet.");
}

absl::StatusOr<v1::Job> JobMachine::Get(const std::string& id) {
  TANDEM_ASSIGN_OR_RETURN(StoredJob row, store_->GetJob(id));
  SetWaitingOf(&row.job, /*may_look=*/true);
  return std::move(row.job);
}

absl::StatusOr<JobPage> JobMachine::List(const JobQuery& query) {
  TANDEM_ASSIGN_OR_RETURN(JobPage page, store_->ListJobs(query));
  for (v1::Job& job : page.jobs) SetWaitingOf(&job, /*may_look=*/true);
  return page;
}

absl::StatusOr<std::vector<v1::Job>> JobMachine::NonTerminalJobs() {
  TANDEM_ASSIGN_OR_RETURN(std::vector<StoredJob> rows, store_->NonTerminalJobs());
  std::vector<v1::Job> jobs;
  for (StoredJob& row : rows) jobs.push_back(std::move(row.job));
  for (v1::Job& job : jobs) SetWaitingOf(&job, /*may_look=*/false);
  return jobs;
}

absl::Status JobMachine::VisitNonTerminalJobs(absl::FunctionRef<void(v1::Job)> visit) {
  return store_->VisitNonTerminalJobs([visit](StoredJob row) { visit(std::move(row.job)); });
}

}  // namespace tandem
