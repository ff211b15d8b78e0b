#include "server/jobs/transitions.h"

#include "absl/strings/strip.h"

namespace tandem {
namespace {

constexpr Transition kRefuse{Transition::Outcome::kRefuse, v1::JOB_STATE_UNSPECIFIED};
constexpr Transition kStay{Transition::Outcome::kStay, v1::JOB_STATE_UNSPECIFIED};

constexpr Transition To(v1::JobState state) { return {Transition::Outcome::kMove, state}; }

// The transitions of each trigger in one state. Triggers that are not given are refused.
struct Row {
  v1::JobState from;
  Transition schedule = kRefuse;
  Transition requeue = kRefuse;
  Transition training_started = kRefuse;
  Transition report = kRefuse;
  Transition finished_succeeded = kRefuse;
  Transition finished_failed = kRefuse;
  Transition finished_cancelled = kRefuse;
  Transition finished_paused = kRefuse;
  Transition worker_lost = kRefuse;
  Transition restart = kRefuse;
  Transition cancel = kRefuse;
  Transition pause = kRefuse;
  Transition preempt = kRefuse;
  Transition resume = kRefuse;
  Transition erase = kRefuse;
};

// A job that must stop ends CANCELLED, however its worker ends. A job that must pause becomes PAUSED when its
// worker ends, unless the worker says that training has ended. A job that must make room becomes QUEUED
// instead of PAUSED. A worker that stops without an order has failed.
constexpr Row kTable[] = {
    {.from = v1::JOB_STATE_QUEUED,
     .schedule = To(v1::JOB_STATE_STARTING),
     .cancel = To(v1::JOB_STATE_CANCELLED),
     .pause = To(v1::JOB_STATE_PAUSED),
     .resume = kStay},
    {.from = v1::JOB_STATE_STARTING,
     .requeue = To(v1::JOB_STATE_QUEUED),
     .training_started = To(v1::JOB_STATE_RUNNING),
     .report = kStay,
     .finished_failed = To(v1::JOB_STATE_FAILED),
     .finished_cancelled = To(v1::JOB_STATE_FAILED),
     .finished_paused = To(v1::JOB_STATE_FAILED),
     .worker_lost = To(v1::JOB_STATE_FAILED),
     .restart = To(v1::JOB_STATE_QUEUED),
     .cancel = To(v1::JOB_STATE_CANCELLING),
     .pause = To(v1::JOB_STATE_PAUSING),
     .preempt = To(v1::JOB_STATE_PREEMPTING),
     .resume = kStay},
    {.from = v1::JOB_STATE_RUNNING,
     .report = kStay,
     .finished_succeeded = To(v1::JOB_STATE_SUCCEEDED),
     .finished_failed = To(v1::JOB_STATE_FAILED),
     .finished_cancelled = To(v1::JOB_STATE_FAILED),
     .finished_paused = To(v1::JOB_STATE_FAILED),
     .worker_lost = To(v1::JOB_STATE_FAILED),
     .restart = To(v1::JOB_STATE_QUEUED),
     .cancel = To(v1::JOB_STATE_CANCELLING),
     .pause = To(v1::JOB_STATE_PAUSING),
     .preempt = To(v1::JOB_STATE_PREEMPTING),
     .resume = kStay},
    {.from = v1::JOB_STATE_CANCELLING,
     // The worker started before the order arrived.
     .training_started = kStay,
     .report = kStay,
     .finished_succeeded = To(v1::JOB_STATE_CANCELLED),
     .finished_failed = To(v1::JOB_STATE_CANCELLED),
     .finished_cancelled = To(v1::JOB_STATE_CANCELLED),
     .finished_paused = To(v1::JOB_STATE_CANCELLED),
     .worker_lost = To(v1::JOB_STATE_CANCELLED),
     .cancel = kStay},
    {.from = v1::JOB_STATE_SUCCEEDED,
     // The worker's process has exited, as expected.
     .worker_lost = kStay,
     .erase = kStay},
    {.from = v1::JOB_STATE_FAILED, .worker_lost = kStay, .resume = To(v1::JOB_STATE_QUEUED), .erase = kStay},
    {.from = v1::JOB_STATE_CANCELLED, .worker_lost = kStay, .cancel = kStay, .erase = kStay},
    {.from = v1::JOB_STATE_PAUSING,
     // The worker started before the order arrived.
     .training_started = kStay,
     .report = kStay,
     .finished_succeeded = To(v1::JOB_STATE_SUCCEEDED),
     .finished_failed = To(v1::JOB_STATE_FAILED),
     .finished_cancelled = To(v1::JOB_STATE_FAILED),
     .finished_paused = To(v1::JOB_STATE_PAUSED),
     .worker_lost = To(v1::JOB_STATE_PAUSED),
     .cancel = To(v1::JOB_STATE_CANCELLING),
     .pause = kStay},
    {.from = v1::JOB_STATE_PREEMPTING,
     // The worker started before the order arrived.
     .training_started = kStay,
     .report = kStay,
     .finished_succeeded = To(v1::JOB_STATE_SUCCEEDED),
     .finished_failed = To(v1::JOB_STATE_FAILED),
     .finished_cancelled = To(v1::JOB_STATE_FAILED),
     .finished_paused = To(v1::JOB_STATE_QUEUED),
     .worker_lost = To(v1::JOB_STATE_QUEUED),
     .cancel = To(v1::JOB_STATE_CANCELLING),
     .pause = To(v1::JOB_STATE_PAUSING),
     .preempt = kStay,
     .resume = kStay},
    {.from = v1::JOB_STATE_PAUSED,
     .worker_lost = kStay,
     .cancel = To(v1::JOB_STATE_CANCELLED),
     .pause = kStay,
     .resume = To(v1::JOB_STATE_QUEUED)},
};

const Transition& Cell(const Row& row, Trigger trigger) {
  switch (trigger) {
    case Trigger::kSchedule:
      return row.schedule;
    case Trigger::kRequeue:
      return row.requeue;
    case Trigger::kTrainingStarted:
      return row.training_started;
    case Trigger::kReport:
      return row.report;
    case Trigger::kFinishedSucceeded:
      return row.finished_succeeded;
    case Trigger::kFinishedFailed:
      return row.finished_failed;
    case Trigger::kFinishedCancelled:
      return row.finished_cancelled;
    case Trigger::kFinishedPaused:
      return row.finished_paused;
    case Trigger::kWorkerLost:
      return row.worker_lost;
    case Trigger::kRestart:
      return row.restart;
    case Trigger::kCancel:
      return row.cancel;
    case Trigger::kPause:
      return row.pause;
    case Trigger::kPreempt:
      return row.preempt;
    case Trigger::kResume:
      return row.resume;
    case Trigger::kDelete:
      return row.erase;
  }
  return kRefuse;
}

}  // namespace

Transition NextState(v1::JobState from, Trigger trigger) {
  for (const Row& row : kTable) {
    if (row.from == from) return Cell(row, trigger);
  }
  return kRefuse;
}

absl::string_view TriggerName(Trigger trigger) {
  switch (trigger) {
    case Trigger::kSchedule:
      return "schedule";
    case Trigger::kRequeue:
      return "requeue";
    case Trigger::kTrainingStarted:
      return "training started";
    case Trigger::kReport:
      return "report";
    case Trigger::kFinishedSucceeded:
      return "finished: succeeded";
    case Trigger::kFinishedFailed:
      return "finished: failed";
    case Trigger::kFinishedCancelled:
      return "finished: cancelled";
    case Trigger::kFinishedPaused:
      return "finished: paused";
    case Trigger::kWorkerLost:
      return "worker lost";
    case Trigger::kRestart:
      return "restart";
    case Trigger::kCancel:
      return "cancel";
    case Trigger::kPause:
      return "pause";
    case Trigger::kPreempt:
      return "preempt";
    case Trigger::kResume:
      return "resume";
    case Trigger::kDelete:
      return "delete";
  }
  return "unknown";
}

std::string StateName(v1::JobState state) {
  return std::string(absl::StripPrefix(v1::JobState_Name(state), "JOB_STATE_"));
}

}  // namespace tandem
