#include "server/jobs/worker_loss.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/jobs/job_machine.h"
#include "server/store/records.h"

namespace tandem {
namespace {

// 2^9 seconds exceed kLongestRestartDelay.
constexpr int kMostDoublings = 9;

// Errors' messages have no full stop.
std::string Sentence(const std::string& message) {
  return absl::EndsWith(message, ".") ? message : absl::StrCat(message, ".");
}

// Returns true if the cluster ended the attempt by its own rules, so the job is not at fault.
bool IsPlannedEnd(v1::StateReason reason) {
  return reason == v1::STATE_REASON_CLUSTER_TIME_LIMIT || reason == v1::STATE_REASON_CLUSTER_PREEMPTED;
}

std::string Again(const v1::Job& job, bool is_counted) {
  const int seconds = static_cast<int>(absl::ToInt64Seconds(RestartDelay(job.restarts())));
  return absl::StrCat(
      " It starts again in ", seconds, " s or later, ",
      job.has_last_checkpoint() ? absl::StrCat("from its checkpoint of step ", job.last_checkpoint().step())
                                : "from the beginning, as it has no checkpoint",
      is_counted ? absl::StrCat(": restart ", job.restarts(), " of ", job.spec().max_restarts())
                 : ". The restart is not counted, because the attempt wrote a checkpoint",
      ".");
}

// Says that a lost job has no restart left, and how a person can continue. Empty for other ends.
std::string AfterTheLastRestart(const v1::Job& job, v1::StateReason reason) {
  const int most = job.spec().max_restarts();
  if (!IsLossReason(reason) || job.restarts() < most) return "";
  const std::string id = JobId(job.name());
  return absl::StrCat(" No restart is left (max_restarts is ", most, "). `tandem logs ", id,
                      " --rank N` has the log of rank N. `tandem resume ", id,
                      "` continues the job, with new restarts.");
}

}  // namespace

absl::Duration RestartDelay(int restart) {
  const int doublings = std::clamp(restart - 1, 0, kMostDoublings);
  return std::min(kLongestRestartDelay, absl::Seconds(int64_t{1} << doublings));
}

bool IsLossReason(v1::StateReason reason) {
  switch (reason) {
    case v1::STATE_REASON_WORKER_LOST:
    case v1::STATE_REASON_CLUSTER_TIME_LIMIT:
    case v1::STATE_REASON_CLUSTER_PREEMPTED:
    case v1::STATE_REASON_CLUSTER_NODE_FAILED:
      return true;
    default:
      return false;
  }
}

bool MayRestart(const v1::Job& job, v1::StateReason reason, bool is_counted) {
  if (job.state() != v1::JOB_STATE_STARTING && job.state() != v1::JOB_STATE_RUNNING) return false;
  if (is_counted && job.restarts() >= job.spec().max_restarts()) return false;
  return IsLossReason(reason) || (reason == v1::STATE_REASON_WORKER_START_FAILED && job.restarts() == 0);
}

absl::Status LoseWorker(Transaction* transaction, const WorkerLoss& loss,
                        const google::protobuf::Timestamp& now, JobChanges* changes) {
  v1::Job& job = changes->job.job;
  if (!job.has_spec()) TANDEM_RETURN_IF_ERROR(transaction->LoadSpec(&changes->job));
  // The worker may have replaced a file without reporting its new digest. The next worker reports the files
  // again, but there may be no next worker.
  for (v1::Artifact& artifact : *job.mutable_artifacts()) artifact.clear_sha256();
  JobEdit edit(transaction, changes);
  bool has_advanced = false;
  if (IsPlannedEnd(loss.reason)) {
    TANDEM_ASSIGN_OR_RETURN(has_advanced, transaction->HasCheckpointOfAttempt(changes->job));
  }
  const bool is_counted = !has_advanced;
  if (MayRestart(job, loss.reason, is_counted)) {
    using google::protobuf::util::TimeUtil;
    if (is_counted) job.set_restarts(job.restarts() + 1);
    *job.mutable_restart_time() =
        now + TimeUtil::SecondsToDuration(absl::ToInt64Seconds(RestartDelay(job.restarts())));
    job.clear_devices();
    return edit.Take(Trigger::kRestart, v1::STATE_REASON_RESTARTING,
                     absl::StrCat(Sentence(loss.message), Again(job, is_counted)), loss.time);
  }
  switch (job.state()) {
    case v1::JOB_STATE_CANCELLING:
      return edit.Take(Trigger::kWorkerLost, job.reason(), absl::StrCat("Cancelled. ", loss.message),
                       loss.time, loss.summary);
    case v1::JOB_STATE_PREEMPTING:
      return edit.Take(Trigger::kWorkerLost, job.reason(),
                       absl::StrCat("Preempted without a new checkpoint. ", loss.message), loss.time);
    case v1::JOB_STATE_PAUSING:
      return edit.Take(Trigger::kWorkerLost, loss.reason,
                       absl::StrCat("Paused without a new checkpoint. ", loss.message), loss.time,
                       loss.summary);
    default: {
      std::string more;
      if (job.restarts() > 0) {
        more = absl::StrCat(" It was restarted ", job.restarts(), job.restarts() == 1 ? " time" : " times",
                            " since its last new epoch in a checkpoint, or since it began.");
      }
      more += AfterTheLastRestart(job, loss.reason);
      return edit.Take(Trigger::kWorkerLost, loss.reason,
                       more.empty() ? loss.message : absl::StrCat(Sentence(loss.message), more), loss.time,
                       loss.summary);
    }
  }
}

}  // namespace tandem
