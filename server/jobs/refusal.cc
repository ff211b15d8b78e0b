#include "server/jobs/refusal.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "server/store/records.h"

namespace tandem {
namespace {

// The remedy for a job that has ended or is stopping for good.
std::string TrainOn(const v1::Job& job) {
  return job.has_last_checkpoint() ? "fork it from its last checkpoint, or submit it again"
                                   : "submit it again";
}

// What the caller wanted, as in "cannot pause the job".
absl::string_view VerbOf(Trigger trigger) {
  switch (trigger) {
    case Trigger::kPause:
      return "pause";
    case Trigger::kResume:
      return "resume";
    case Trigger::kCancel:
      return "cancel";
    case Trigger::kDelete:
      return "delete";
    default:
      return TriggerName(trigger);
  }
}

// The rest of the sentence "it is FAILED": more of the reason, and the remedy. Empty if there is no remedy.
std::string Advice(const v1::Job& job, Trigger trigger) {
  const v1::JobState state = job.state();
  switch (trigger) {
    case Trigger::kPause:
      return state == v1::JOB_STATE_FAILED ? "; resume it to continue its training"
                                           : absl::StrCat("; ", TrainOn(job));
    case Trigger::kResume:
      if (state == v1::JOB_STATE_PAUSING) {
        return ", and its worker is still writing its checkpoint; resume it when it is PAUSED";
      }
      return absl::StrCat(", and only a paused or failed job can be resumed; ", TrainOn(job));
    case Trigger::kCancel:
      return "; delete it to remove its record and files";
    case Trigger::kDelete:
      if (state == v1::JOB_STATE_CANCELLING) return "; delete it when it has ended";
      return ", and only a job that has ended can be deleted; cancel it first";
    default:
      return "";
  }
}

}  // namespace

absl::Status RefuseTrigger(const v1::Job& job, Trigger trigger) {
  absl::Status status =
      absl::FailedPreconditionError(absl::StrCat("cannot ", VerbOf(trigger), " the job \"", job.name(),
                                                 "\": it is ", StateName(job.state()), Advice(job, trigger)));
  switch (trigger) {
    case Trigger::kDelete:
      return WithReason(std::move(status), "JOB_HAS_NOT_ENDED");
    case Trigger::kPause:
    case Trigger::kResume:
    case Trigger::kCancel:
      return WithReason(std::move(status), IsTerminal(job.state()) ? "JOB_HAS_ENDED" : "JOB_IS_STOPPING");
    default:
      return status;
  }
}

}  // namespace tandem
