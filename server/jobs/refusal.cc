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
  return job.has_last_checkpoint() ? "to train on, fork it from its last checkpoint, or submit it again"
                                   : "to train it, submit it again";
}

std::string Advice(const v1::Job& job, Trigger trigger) {
  const v1::JobState state = job.state();
  switch (trigger) {
    case Trigger::kPause:
      if (state == v1::JOB_STATE_FAILED) {
        return "it has ended, so that there is nothing to pause; resume it to let it go on";
      }
      if (state == v1::JOB_STATE_CANCELLING) {
        return absl::StrCat("it is being stopped for good, and cannot be paused; ", TrainOn(job));
      }
      return absl::StrCat("it has ended, so that there is nothing to pause; ", TrainOn(job));
    case Trigger::kResume:
      if (state == v1::JOB_STATE_PAUSING) {
        return "its worker is still writing its checkpoint; resume it when it is PAUSED";
      }
      return absl::StrCat(
          state == v1::JOB_STATE_SUCCEEDED ? "it has trained to its end" : "it was stopped for good",
          ", and only a job that is paused or has failed goes on; ", TrainOn(job));
    case Trigger::kCancel:
      return "it has ended, so that there is nothing to cancel; delete it to remove its record and its files";
    case Trigger::kDelete:
      if (state == v1::JOB_STATE_CANCELLING) return "it is being stopped; delete it when it has ended";
      return "only a job that has ended can be deleted; cancel it first";
    default:
      return absl::StrCat("\"", TriggerName(trigger), "\" is not possible there");
  }
}

}  // namespace

absl::Status RefuseTrigger(const v1::Job& job, Trigger trigger) {
  absl::Status status = absl::FailedPreconditionError(
      absl::StrCat("the job \"", job.name(), "\" is ", StateName(job.state()), ": ", Advice(job, trigger)));
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
