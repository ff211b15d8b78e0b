#include "server/jobs/job_edit.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/jobs/refusal.h"

namespace tandem {

void JobChanges::PackSpec() {
  packed_spec = job.job.spec().SerializeAsString();
  job.job.clear_spec();
}

void JobChanges::UnpackSpec() {
  // PackSpec serialized it, so it parses.
  job.job.mutable_spec()->ParseFromString(packed_spec);
  packed_spec.clear();
}

absl::Status JobEdit::Begin(const google::protobuf::Timestamp& time) {
  const bool is_on_cluster = changes_->job.job.spec().has_cluster();
  return Move(v1::JOB_STATE_QUEUED, v1::STATE_REASON_SUBMITTED,
              is_on_cluster ? "Accepted; waiting for its cluster." : "Accepted; waiting for devices.", time);
}

absl::Status JobEdit::Take(Trigger trigger, v1::StateReason reason, const std::string& message,
                           const google::protobuf::Timestamp& time, const v1::TrainingSummary* summary) {
  const v1::Job& job = changes_->job.job;
  const Transition transition = NextState(job.state(), trigger);
  switch (transition.outcome) {
    case Transition::Outcome::kStay:
      return absl::OkStatus();
    case Transition::Outcome::kMove:
      return Move(transition.to, reason, message, time, summary);
    case Transition::Outcome::kRefuse:
      break;
  }
  return RefuseTrigger(job, trigger);
}

absl::Status JobEdit::Move(v1::JobState to, v1::StateReason reason, const std::string& message,
                           const google::protobuf::Timestamp& time, const v1::TrainingSummary* summary) {
  v1::Job& job = changes_->job.job;
  v1::JobEvent event;
  v1::StateChange* change = event.mutable_state_change();
  change->set_from(job.state());
  change->set_to(to);
  change->set_reason(reason);
  change->set_message(message);
  if (summary != nullptr) *change->mutable_summary() = *summary;
  // The table already allowed the move, even from a terminal state.
  TANDEM_RETURN_IF_ERROR(AppendToLog(std::move(event), time));

  if (IsHolding(job.state()) && !IsHolding(to) && job.has_lease_time()) {
    const absl::Duration held = changes_->leases->Held(job, time);
    job.set_run_seconds(job.run_seconds() + absl::ToDoubleSeconds(held));
  }
  if (to == v1::JOB_STATE_STARTING && job.spec().has_cluster()) {
    // The time in a cluster's queue does not count. The lease begins with the training.
    job.clear_lease_time();
  } else if (to == v1::JOB_STATE_STARTING) {
    *job.mutable_lease_time() = time;
    changes_->leases->Begin(job);
  }
  changes_->queued += (to == v1::JOB_STATE_QUEUED) - (job.state() == v1::JOB_STATE_QUEUED);
  job.set_state(to);
  job.set_reason(reason);
  job.set_message(message);
  if (to == v1::JOB_STATE_QUEUED) {
    // The facts of the earlier end no longer hold.
    job.clear_end_time();
    job.clear_summary();
  }
  if (reason != v1::STATE_REASON_RESTARTING) job.clear_restart_time();
  if (summary != nullptr) *job.mutable_summary() = *summary;
  if (to == v1::JOB_STATE_RUNNING) *job.mutable_start_time() = time;
  if (IsTerminal(to)) *job.mutable_end_time() = time;
  if (!job.has_spec()) TANDEM_RETURN_IF_ERROR(transaction_->LoadSpec(&changes_->job));
  changes_->moved = true;

  auto logged = std::make_shared<JobChange>();
  TANDEM_ASSIGN_OR_RETURN(logged->cursor, transaction_->AppendChange(changes_->job, job.last_sequence()));
  logged->event = *changes_->events.back();
  changes_->changes.push_back(std::move(logged));
  return absl::OkStatus();
}

absl::Status JobEdit::Append(v1::JobEvent event, const google::protobuf::Timestamp& time) {
  v1::Job& job = changes_->job.job;
  if (IsTerminal(job.state())) {
    return absl::FailedPreconditionError(absl::StrCat("cannot add to the log of \"", job.name(),
                                                      "\": the job is ", StateName(job.state()),
                                                      ", so its log is complete"));
  }
  return AppendToLog(std::move(event), time);
}

absl::Status JobEdit::AppendToLog(v1::JobEvent event, const google::protobuf::Timestamp& time) {
  v1::Job& job = changes_->job.job;
  event.set_job(job.name());
  event.set_sequence(job.last_sequence() + 1);
  *event.mutable_time() = time;
  event.set_attempt(job.attempt());
  event.set_terminal(IsTerminal(event.state_change().to()));
  TANDEM_RETURN_IF_ERROR(transaction_->AppendEvent(changes_->job, event));
  job.set_last_sequence(event.sequence());
  changes_->events.push_back(std::make_shared<const v1::JobEvent>(std::move(event)));
  return absl::OkStatus();
}

absl::Status JobEdit::Finish() { return transaction_->UpdateJob(&changes_->job); }

}  // namespace tandem
