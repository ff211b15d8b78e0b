#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/jobs/job_edit.h"
#include "server/jobs/job_machine.h"
#include "server/jobs/new_job.h"
#include "server/store/request_owner.h"
#include "server/store/timestamps.h"

// The methods of JobMachine that change many jobs at once.

namespace tandem {
namespace {

// ALREADY_EXISTS if the request was another user's or for another sweep.
absl::Status CheckRepeated(const StoredSweepRequest& known, const std::string& user,
                           const std::string& request_id, const v1::Sweep& submitted) {
  TANDEM_RETURN_IF_ERROR(CheckRequestOwner(request_id, known.sweep.sweep.user(), user));
  if (google::protobuf::util::MessageDifferencer::Equals(known.submitted, submitted)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("request_id: \"", request_id, "\" was already used for another sweep, \"",
                   known.sweep.sweep.name(), "\"; use a new one for a new sweep"));
}

}  // namespace

void JobMachine::WriteAll(ManyBody body, absl::AnyInvocable<void(absl::Status)> written) {
  auto changes = std::make_shared<std::vector<JobChanges>>();
  auto counted = std::make_shared<int>(0);
  store_->Write(
      [this, changes, counted, body = std::move(body)](Transaction& transaction) mutable {
        absl::Status made = body(transaction, *changes);
        if (made.ok()) {
          for (const JobChanges& change : *changes) *counted += change.queued;
        }
        queued_ += *counted;
        return made;
      },
      [this, changes, counted, written = std::move(written)](absl::Status status) mutable {
        if (status.ok()) {
          for (JobChanges& change : *changes) {
            change.UnpackSpec();
            Announce(change);
            change.job.job.clear_spec();
          }
        } else {
          queued_ -= *counted;
        }
        written(std::move(status));
      });
}

void JobMachine::CreateSweep(NewSweep sweep, Done<StoredSweep> done) {
  auto made = std::make_shared<StoredSweep>();
  WriteAll(
      [this, made, sweep = std::move(sweep)](Transaction& transaction,
                                             std::vector<JobChanges>& changes) mutable -> absl::Status {
        if (!sweep.request_id.empty()) {
          TANDEM_ASSIGN_OR_RETURN(std::optional<StoredSweepRequest> known,
                                  transaction.FindSweepRequest(sweep.request_id));
          if (known.has_value()) {
            TANDEM_RETURN_IF_ERROR(CheckRepeated(*known, sweep.user, sweep.request_id, sweep.submitted));
            *made = std::move(known->sweep);
            return absl::OkStatus();
          }
        }
        const int added = static_cast<int>(sweep.jobs.size());
        TANDEM_RETURN_IF_ERROR(CheckQueuedJobs(&transaction, sweep.user, added, sweep.max_queued_jobs));
        TANDEM_RETURN_IF_ERROR(CheckQueueLength(added));
        made->sweep = sweep.sweep;
        made->sweep.set_jobs(added);
        made->sweep.set_user(sweep.user);
        *made->sweep.mutable_create_time() = TimestampOf(clock_->Now());
        absl::Status inserted;
        for (int i = 0; i < kIdAttempts; ++i) {
          made->sweep.set_name(SweepName(NewId(made->sweep.display_name(), "sweep")));
          inserted = transaction.InsertSweep(made.get(), sweep.request_id, sweep.submitted);
          if (!absl::IsAlreadyExists(inserted)) break;
        }
        TANDEM_RETURN_IF_ERROR(inserted);
        changes.resize(sweep.jobs.size(), JobChanges(&leases_));
        for (int i = 0; i < added; ++i) {
          NewSweep::Part& part = sweep.jobs[i];
          NewJob job;
          job.user = sweep.user;
          job.planned_memory_bytes = part.planned_memory_bytes;
          job.planned_operations = part.planned_operations;
          job.reserved_id = part.reserved_id;
          if (!job.spec.ParseFromString(part.spec))
            return absl::InternalError("cannot read a stored spec: it is damaged");
          v1::Job of_sweep;
          of_sweep.set_sweep(made->sweep.name());
          of_sweep.set_sweep_index(i);
          of_sweep.set_sweep_max_running(made->sweep.max_running());
          of_sweep.mutable_sweep_values()->Add(part.values.begin(), part.values.end());
          TANDEM_RETURN_IF_ERROR(Insert(transaction, job, of_sweep, &changes[i]));
          changes[i].PackSpec();
          part = NewSweep::Part();
          made->jobs.push_back(changes[i].job);
        }
        return absl::OkStatus();
      },
      [made, done = std::move(done)](absl::Status status) mutable {
        if (!status.ok()) return done(std::move(status));
        done(std::move(*made));
      });
}

absl::StatusOr<std::optional<StoredSweep>> JobMachine::FindRepeatedSweep(const std::string& user,
                                                                         const std::string& request_id,
                                                                         const v1::Sweep& submitted) {
  TANDEM_ASSIGN_OR_RETURN(std::optional<StoredSweepRequest> known, store_->FindSweepRequest(request_id));
  if (!known.has_value()) return std::optional<StoredSweep>();
  TANDEM_RETURN_IF_ERROR(CheckRepeated(*known, user, request_id, submitted));
  return std::optional<StoredSweep>(std::move(known->sweep));
}

void JobMachine::CancelSweep(const std::string& id, Done<StoredSweep> done) {
  auto cancelled = std::make_shared<StoredSweep>();
  WriteAll(
      [this, id, cancelled](Transaction& transaction, std::vector<JobChanges>& changes) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(*cancelled, transaction.GetSweep(id));
        const bool active = std::any_of(cancelled->jobs.begin(), cancelled->jobs.end(),
                                        [](const StoredJob& job) { return !IsTerminal(job.job.state()); });
        if (!active) {
          if (cancelled->sweep.state() == v1::SWEEP_STATE_CANCELLING) return absl::OkStatus();
          return absl::FailedPreconditionError(
              absl::StrCat("cannot cancel the sweep \"sweeps/", id, "\": all its jobs have ended"));
        }
        const google::protobuf::Timestamp now = TimestampOf(clock_->Now());
        for (StoredJob& job : cancelled->jobs) {
          if (IsTerminal(job.job.state())) continue;
          JobChanges change(&leases_);
          change.job = job;
          JobEdit edit(&transaction, &change);
          TANDEM_RETURN_IF_ERROR(edit.Take(Trigger::kCancel, v1::STATE_REASON_CANCEL_REQUESTED,
                                           "A user cancelled its sweep.", now));
          if (!change.moved) continue;
          TANDEM_RETURN_IF_ERROR(edit.Finish());
          change.PackSpec();
          job = change.job;
          changes.push_back(std::move(change));
        }
        cancelled->sweep.set_state(v1::SWEEP_STATE_CANCELLING);
        return transaction.UpdateSweep(*cancelled);
      },
      [cancelled, done = std::move(done)](absl::Status status) mutable {
        if (!status.ok()) return done(std::move(status));
        done(std::move(*cancelled));
      });
}

void JobMachine::DeleteSweep(const std::string& id, absl::AnyInvocable<void(absl::Status)> done) {
  WriteAll(
      [this, id](Transaction& transaction, std::vector<JobChanges>& changes) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(StoredSweep sweep, transaction.GetSweep(id));
        for (StoredJob& job : sweep.jobs) {
          if (!IsTerminal(job.job.state())) {
            return absl::FailedPreconditionError(absl::StrCat(
                "cannot delete the sweep \"sweeps/", id, "\": its job \"", job.job.name(), "\" is ",
                StateName(job.job.state()), "; cancel the sweep, or wait until all its jobs have ended"));
          }
          TANDEM_RETURN_IF_ERROR(transaction.LoadSpec(&job));
          TANDEM_RETURN_IF_ERROR(transaction.DeleteJob(job));
          JobChanges& change = changes.emplace_back(&leases_);
          change.deleted = true;
          change.job = std::move(job);
          change.PackSpec();
        }
        return transaction.DeleteSweep(id);
      },
      [this, done = std::move(done)](absl::Status status) mutable {
        if (status.ok()) store_->RemoveDeleted();
        done(std::move(status));
      });
}

}  // namespace tandem
