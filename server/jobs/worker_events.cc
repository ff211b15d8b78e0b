#include "server/jobs/worker_events.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/jobs/model_artifact.h"
#include "server/jobs/worker_loss.h"

namespace tandem {
namespace {

using internal::v1::Finished;
using internal::v1::WorkerEvent;

// INVALID_ARGUMENT: the event or its report has no known kind, or an end has an unknown state.
absl::StatusOr<Trigger> TriggerOf(const WorkerEvent& event) {
  switch (event.kind_case()) {
    case WorkerEvent::kStarted:
      return Trigger::kTrainingStarted;
    case WorkerEvent::kReport:
      if (event.report().kind_case() == v1::JobEvent::KIND_NOT_SET) break;
      return Trigger::kReport;
    case WorkerEvent::kFinished:
      switch (event.finished().state()) {
        case v1::JOB_STATE_SUCCEEDED:
          return Trigger::kFinishedSucceeded;
        case v1::JOB_STATE_FAILED:
          return Trigger::kFinishedFailed;
        case v1::JOB_STATE_CANCELLED:
          return Trigger::kFinishedCancelled;
        case v1::JOB_STATE_PAUSED:
          return Trigger::kFinishedPaused;
        default:
          return absl::InvalidArgumentError(
              absl::StrCat("cannot apply worker event ", event.worker_sequence(), ": ",
                           StateName(event.finished().state()), " is not an end of training"));
      }
    case WorkerEvent::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("cannot apply worker event ", event.worker_sequence(),
                                                 ": this daemon does not know its kind"));
}

// Returns the reason and message of a job's end, from its worker's report.
std::pair<v1::StateReason, std::string> WhyEnded(const v1::Job& job, const Finished& finished) {
  if (job.state() == v1::JOB_STATE_CANCELLING) {
    // The cancellation's reason stays.
    switch (finished.state()) {
      case v1::JOB_STATE_SUCCEEDED:
        return {job.reason(), "Cancelled; training was already complete."};
      case v1::JOB_STATE_FAILED:
        return {job.reason(),
                absl::StrCat("Cancelled; the worker ended with an error: ", finished.message())};
      default:
        // These reasons explain more than the order to stop.
        if (job.reason() == v1::STATE_REASON_TIME_LIMIT_EXCEEDED || job.reason() == v1::STATE_REASON_PRUNED) {
          return {job.reason(), finished.message().empty()
                                    ? job.message()
                                    : absl::StrCat(job.message(), " ", finished.message())};
        }
        return {job.reason(), finished.message().empty() ? "Cancelled." : finished.message()};
    }
  }
  switch (finished.state()) {
    case v1::JOB_STATE_SUCCEEDED:
      return {
          finished.reason() == v1::STATE_REASON_UNSPECIFIED ? v1::STATE_REASON_COMPLETED : finished.reason(),
          finished.message().empty() ? "Training completed." : finished.message()};
    case v1::JOB_STATE_PAUSED:
      if (job.state() == v1::JOB_STATE_PREEMPTING) {
        return {job.reason(),
                "A job of higher priority uses its devices; it continues from its checkpoint later."};
      }
      if (job.state() == v1::JOB_STATE_PAUSING) {
        return {job.reason(), finished.message().empty() ? "Paused." : finished.message()};
      }
      return {v1::STATE_REASON_TRAINING_ERROR,
              absl::StrCat("The worker paused without an order. ", finished.message())};
    case v1::JOB_STATE_CANCELLED:
      return {v1::STATE_REASON_TRAINING_ERROR,
              absl::StrCat("The worker stopped without an order. ", finished.message())};
    default:
      return {finished.reason() == v1::STATE_REASON_UNSPECIFIED ? v1::STATE_REASON_TRAINING_ERROR
                                                                : finished.reason(),
              finished.message().empty() ? "The worker failed and gave no reason." : finished.message()};
  }
}

// Returns true if a name is that of a file directly in the job's folder and can be shown in a terminal.
// Workers create only such files.
bool IsFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c == '/' || absl::ascii_iscntrl(c); });
}

// Bounds of a worker's texts, which the job's record and so lists hold. An honest worker sends short texts,
// and a hijacked worker must not send long ones. All limits together are less than a client's largest
// message.
constexpr size_t kMostText = 16 << 10;
constexpr size_t kMostDescription = 1 << 10;
constexpr size_t kMostReport = 256 << 10;
constexpr size_t kMostArtifact = 2 << 10;
constexpr int kMostArtifacts = 1000;

std::string Brief(const std::string& text, size_t most = kMostText) {
  if (text.size() <= most) return text;
  // Do not cut inside a UTF-8 character.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return absl::StrCat(text.substr(0, most), " [... cut off]");
}

absl::Status CheckSize(const WorkerEvent& event, const google::protobuf::Message& part, size_t most) {
  const size_t bytes = part.ByteSizeLong();
  if (bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot apply worker event ", event.worker_sequence(),
                                                 ": it has ", bytes, " bytes, more than ", most));
}

// Forgets the model of an earlier stop: training continues, so the file is no longer the job's model.
void ForgetModel(v1::Job* job) {
  auto* const artifacts = job->mutable_artifacts();
  artifacts->erase(std::remove_if(artifacts->begin(), artifacts->end(),
                                  [](const v1::Artifact& artifact) { return artifact.name() == kModelFile; }),
                   artifacts->end());
}

// Keeps one entry per name, the newest.
void SetArtifact(const v1::Artifact& artifact, v1::Job* job) {
  for (v1::Artifact& known : *job->mutable_artifacts()) {
    if (known.name() == artifact.name()) {
      known = artifact;
      return;
    }
  }
  *job->add_artifacts() = artifact;
}

absl::Status KeepCheckpoint(const v1::Checkpoint& checkpoint, Transaction* transaction, StoredJob* job) {
  if (!job->job.has_spec()) TANDEM_RETURN_IF_ERROR(transaction->LoadSpec(job));
  const v1::Checkpointing& kept = job->job.spec().checkpoints();
  return transaction->PutCheckpoint(*job, checkpoint, std::max(1, kept.keep_last()), kept.keep_best());
}

// Returns true if a worker's last event says that another worker of the job, or a device, was lost.
bool IsLoss(const WorkerEvent& event, v1::JobState state) {
  return event.finished().state() == v1::JOB_STATE_FAILED && IsLossReason(event.finished().reason()) &&
         state != v1::JOB_STATE_CANCELLING;
}

// Adds the worker's report to the log and to the job's record. INVALID_ARGUMENT: a worker must not report an
// event of this kind, or the report exceeds a bound.
absl::Status Report(const WorkerEvent& reported, const google::protobuf::Timestamp& time,
                    Transaction* transaction, JobChanges* changes) {
  v1::Job* const job = &changes->job.job;
  if (!reported.report().has_notice() && !reported.report().has_artifact()) {
    TANDEM_RETURN_IF_ERROR(CheckSize(reported, reported, kMostReport));
  }
  v1::JobEvent event = reported.report();
  // The bounds of notices and artifacts do not count unknown fields.
  event.DiscardUnknownFields();
  switch (event.kind_case()) {
    case v1::JobEvent::kProgress:
      *job->mutable_progress() = event.progress();
      break;
    case v1::JobEvent::kEpoch:
      *job->mutable_last_epoch() = event.epoch();
      if (event.epoch().has_best()) *job->mutable_best() = event.epoch().best();
      break;
    case v1::JobEvent::kArtifact:
      if (!IsFileName(event.artifact().name())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "cannot apply worker event ", reported.worker_sequence(), ": the artifact '",
            absl::CHexEscape(event.artifact().name().substr(0, 80)), "' is not a file of the job's folder"));
      }
      event.mutable_artifact()->set_description(Brief(event.artifact().description(), kMostDescription));
      TANDEM_RETURN_IF_ERROR(CheckSize(reported, event.artifact(), kMostArtifact));
      SetArtifact(event.artifact(), job);
      if (job->artifacts_size() > kMostArtifacts) {
        return absl::InvalidArgumentError(absl::StrCat("cannot apply worker event ",
                                                       reported.worker_sequence(), ": the job already has ",
                                                       kMostArtifacts, " artifacts, the most"));
      }
      break;
    case v1::JobEvent::kNotice:
      event.mutable_notice()->set_message(Brief(event.notice().message()));
      break;
    case v1::JobEvent::kCheckpoint:
      // A worker reports the checkpoint that it continues from again.
      if (job->last_checkpoint().step() == event.checkpoint().step()) return absl::OkStatus();
      // Progress is only what the next attempt need not repeat.
      if (event.checkpoint().epoch() > job->last_checkpoint().epoch()) job->clear_restarts();
      *job->mutable_last_checkpoint() = event.checkpoint();
      TANDEM_RETURN_IF_ERROR(KeepCheckpoint(event.checkpoint(), transaction, &changes->job));
      break;
    case v1::JobEvent::kValidation:
      if (event.validation().has_best()) *job->mutable_best() = event.validation().best();
      break;
    case v1::JobEvent::kWorkerLoads:
    case v1::JobEvent::kParameters:
      break;
    case v1::JobEvent::kStateChange:
    case v1::JobEvent::kPriorityChange:
    case v1::JobEvent::KIND_NOT_SET:
      return absl::InvalidArgumentError(absl::StrCat("cannot apply worker event ", reported.worker_sequence(),
                                                     ": a worker must not report this kind"));
  }
  return JobEdit(transaction, changes).Append(std::move(event), time);
}

// Returns true if the event has a plausible time. The worker uses this machine's clock, so a time far ahead
// is not trusted.
bool IsTime(const WorkerEvent& event, const google::protobuf::Timestamp& now) {
  constexpr int64_t kFarSeconds = 24 * 60 * 60;
  const google::protobuf::Timestamp& time = event.time();
  return event.has_time() && time.seconds() >= 0 && time.seconds() <= now.seconds() + kFarSeconds &&
         time.nanos() >= 0 && time.nanos() < 1'000'000'000;
}

// Describes the start of training at `step`. If the record has a later checkpoint, that checkpoint is gone or
// damaged.
std::string HowItBegan(const v1::Job& job, int64_t step) {
  const int64_t known = job.last_checkpoint().step();
  if (step == 0) {
    return known == 0 ? "Training began."
                      : absl::StrCat("Training started from the beginning: the checkpoint of step ", known,
                                     " is no longer in the job's folder.");
  }
  return step >= known ? absl::StrCat("Training continues from step ", step, ".")
                       : absl::StrCat("Training continues from step ", step, ": the checkpoint of step ",
                                      known, " is gone or damaged.");
}

absl::Status ApplyEvent(const WorkerEvent& event, const google::protobuf::Timestamp& now,
                        Transaction* transaction, JobChanges* changes) {
  const v1::Job* const job = &changes->job.job;
  TANDEM_ASSIGN_OR_RETURN(const Trigger trigger, TriggerOf(event));
  if (NextState(job->state(), trigger).outcome == Transition::Outcome::kRefuse) {
    return absl::InvalidArgumentError(absl::StrCat("cannot apply worker event ", event.worker_sequence(),
                                                   " (", TriggerName(trigger), "): the job \"", job->name(),
                                                   "\" is ", StateName(job->state())));
  }
  const google::protobuf::Timestamp& time = IsTime(event, now) ? event.time() : now;
  JobEdit edit(transaction, changes);
  switch (trigger) {
    case Trigger::kReport:
      return Report(event, time, transaction, changes);
    case Trigger::kTrainingStarted: {
      const std::string message = HowItBegan(*job, event.started().step());
      // Messages about the next attempt use last_checkpoint.
      if (event.started().step() == 0) changes->job.job.clear_last_checkpoint();
      ForgetModel(&changes->job.job);
      TANDEM_RETURN_IF_ERROR(edit.Take(trigger, v1::STATE_REASON_TRAINING_STARTED, message, time));
      // On a cluster, the lease begins now, also if the job must already stop.
      if (!job->has_spec()) TANDEM_RETURN_IF_ERROR(transaction->LoadSpec(&changes->job));
      if (job->spec().has_cluster()) {
        *changes->job.job.mutable_lease_time() = now;
        changes->leases->Begin(*job);
      }
      return absl::OkStatus();
    }
    default: {
      Finished finished = event.finished();
      finished.set_message(Brief(event.finished().message()));
      TANDEM_RETURN_IF_ERROR(CheckSize(event, finished, kMostReport));
      const v1::TrainingSummary* const summary = finished.has_summary() ? &finished.summary() : nullptr;
      if (IsLoss(event, job->state())) {
        return LoseWorker(
            transaction,
            {.reason = finished.reason(), .message = finished.message(), .time = time, .summary = summary},
            now, changes);
      }
      const auto [reason, message] = WhyEnded(*job, finished);
      // A preempted job has not ended.
      const bool has_ended = NextState(job->state(), trigger).to != v1::JOB_STATE_QUEUED;
      return edit.Take(trigger, reason, message, time, has_ended ? summary : nullptr);
    }
  }
}

}  // namespace

absl::Status CheckAttempt(const v1::Job& job, int32_t attempt) {
  if (job.attempt() == attempt) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot apply events of attempt ", attempt, " of \"",
                                                    job.name(), "\": its current attempt is ",
                                                    job.attempt()));
}

absl::Status ApplyEvents(Transaction* transaction, int32_t attempt, const std::vector<WorkerEvent>& events,
                         const google::protobuf::Timestamp& now, JobChanges* changes) {
  StoredJob& row = changes->job;
  TANDEM_RETURN_IF_ERROR(CheckAttempt(row.job, attempt));
  // A preempted job, or a job that lost another worker, has already reported this worker's end.
  if (row.job.state() == v1::JOB_STATE_QUEUED && row.job.reason() != v1::STATE_REASON_PREEMPTED &&
      row.job.reason() != v1::STATE_REASON_RESTARTING) {
    return absl::FailedPreconditionError(absl::StrCat("cannot apply events of attempt ", attempt, " of \"",
                                                      row.job.name(),
                                                      "\": the attempt was given up and the job is QUEUED"));
  }
  bool changed = false;
  for (const WorkerEvent& event : events) {
    if (event.worker_sequence() < 1) {
      return absl::InvalidArgumentError(absl::StrCat("cannot apply the worker event: its worker_sequence is ",
                                                     event.worker_sequence(), "; they start at 1"));
    }
    if (event.worker_sequence() <= row.last_worker_sequence) continue;
    if (event.worker_sequence() != row.last_worker_sequence + 1) {
      return absl::OutOfRangeError(absl::StrCat("cannot apply worker event ", event.worker_sequence(),
                                                ": the last one was ", row.last_worker_sequence,
                                                ", so events are missing"));
    }
    if (IsAtRest(row.job.state()) || row.job.state() == v1::JOB_STATE_QUEUED) {
      return absl::FailedPreconditionError(absl::StrCat("cannot apply events of attempt ", attempt, " of \"",
                                                        row.job.name(), "\": the job is ",
                                                        StateName(row.job.state())));
    }
    TANDEM_RETURN_IF_ERROR(ApplyEvent(event, now, transaction, changes));
    row.last_worker_sequence = event.worker_sequence();
    changed = true;
  }
  return changed ? JobEdit(transaction, changes).Finish() : absl::OkStatus();
}

}  // namespace tandem
