#include "server/jobs/transitions.h"

#include "absl/strings/strip.h"

namespace tandem {
namespace {

constexpr Transition kRefuse{Transition::Outcome::kRefuse, v1::JOB_STATE_UNSPECIFIED};
constexpr Transition kStay{Transition::Outcome::kStay, v1::JOB_STATE_UNSPECIFIED};

constexpr Transition To(v1::JobState state) { return {Transition::Outcome::kMove, state}; }

// The transitions of each trigger in one state.
struct Row {
  v1::JobState from;
  Transition schedule;
  Transition requeue;
  Transition training_started;
  Transition report;
  Transition finished_succeeded;
  Transition finished_failed;
  Transition finished_cancelled;
  Transition finished_paused;
  Transition worker_lost;
  Transition restart;
  Transition cancel;
  Transition pause;
  Transition preempt;
  Transition resume;
  Transition erase;
};

// A job that must stop ends CANCELLED, however its worker ends. A job that must pause becomes PAUSED when its
// worker ends, unless the worker says that training has ended. A job that must make room becomes QUEUED
// instead of PAUSED. A worker that stops without an order has failed.
constexpr Row kTable[] = {
    {.from = v1::JOB_STATE_QUEUED,
     .schedule = To(v1::JOB_STATE_STARTING),
     .requeue = kRefuse,
     .training_started = kRefuse,
     .report = kRefuse,
     .finished_succeeded = kRefuse,
     .finished_failed = kRefuse,
     .finished_cancelled = kRefuse,
     .finished_paused = kRefuse,
     .worker_lost = kRefuse,
     .restart = kRefuse,
     .cancel = To(v1::JOB_STATE_CANCELLED),
     .pause = To(v1::JOB_STATE_PAUSED),
     .preempt = kRefuse,
     .resume = kStay,
     .erase = kRefuse},
    {.from = v1::JOB_STATE_STARTING,
     .schedule = kRefuse,
     .requeue = To(v1::JOB_STATE_QUEUED),
     .training_started = To(v1::JOB_STATE_RUNNING),
     .report = kStay,
     .finished_succeeded = kRefuse,
     .finished_failed = To(v1::JOB_STATE_FAILED),
     .finished_cancelled = To(v1::JOB_STATE_FAILED),
     .finished_paused = To(v1::JOB_STATE_FAILED),
     .worker_lost = To(v1::JOB_STATE_FAILED),
     .restart = To(v1::JOB_STATE_QUEUED),
     .cancel = To(v1::JOB_STATE_CANCELLING),
     .pause = To(v1::JOB_STATE_PAUSING),
     .preempt = To(v1::JOB_STATE_PREEMPTING),
     .resume = kStay,
     .erase = kRefuse},
    {.from = v1::JOB_STATE_RUNNING,
     .schedule = kRefuse,
     .requeue = kRefuse,
     .training_started = kRefuse,
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
     .resume = kStay,
     .erase = kRefuse},
    {.from = v1::JOB_STATE_CANCELLING,
     .schedule = kRefuse,
     .requeue = kRefuse,
     // The worker started before the order arrived.
     .training_started = kStay,
     .report = kStay,
     .finished_succeeded = To(v1::JOB_STATE_CANCELLED),
     .finished_failed = To(v1::JOB_STATE_CANCELLED),
     .finished_cancelled = To(v1::JOB_STATE_CANCELLED),
     .finished_paused = To(v1::JOB_STATE_CANCELLED),
     .worker_lost = To(v1::JOB_STATE_CANCELLED),
     .restart = kRefuse,
     .cancel = kStay,
     .pause = kRefuse,
     .preempt = kRefuse,
     .resume = kRefuse,
     .erase = kRefuse},
    {.from = v1::JOB_STATE_SUCCEEDED,
     .schedule = kRefuse,
     .requeue = kRefuse,
     .training_started = kRefuse,
     .report = kRefuse,
     .finished_succeeded = kRefuse,
     .finished_failed = kRefuse,
     .finished_cancelled = kRefuse,
     .finished_paused = kRefuse,
     // The worker's process has exited, as expected.
     .worker_lost = kStay,
     .restart = kRefuse,
     .cancel = kRefuse,
     .pause = kRefuse,
     .preempt = kRefuse,
     .resume = kRefuse,
     .erase = kStay},
    {.from = v1::JOB_STATE_FAILED,
     .schedule = kRefuse,
     .requeue = kRefuse,
     .training_started = kRefuse,
     .report = kRefuse,
     .finished_succeeded = kRefuse,
     .finished_failed = kRefuse,
     .finished_cancelled = kRefuse,
     .finished_paused = kRefuse,
     .worker_lost = kStay,
     .restart = kRefuse,
     .cancel = kRefuse,
     .pause = kRefuse,
     .preempt = kRefuse,
     .resume = To(v1::JOB_STATE_QUEUED),
     .erase = kStay},
    {.from = v1::JOB_STATE_CANCELLED,
     .schedule = kRefuse,
     .requeue = kRefuse,
     .training_started = kRefuse,
     .report = kRefuse,
     .finished_succeeded = kRefuse,
     .finished_failed = kRefuse,
     .finished_cancelled = kRefuse,
     .finished_paused = kRefuse,
     .worker_lost = kStay,
     .restart = kRefuse,
     .cancel = kStay,
     .pause = kRefuse,
     .preempt = kRefuse,
     .resume = kRefuse,
     .erase = kStay},
    {.from = v1::JOB_STATE_PAUSING,
     .schedule = kRefuse,
     .requeue = kRefuse,
     // The worker started before the order arrived.
     .training_started = kStay,
     .report = kStay,
     .finished_succeeded = To(v1::JOB_STATE_SUCCEEDED),
     .finished_failed = To(v1::JOB_STATE_FAILED),
     .finished_cancelled = To(v1::JOB_STATE_FAILED),
     .finished_paused = To(v1::JOB_STATE_PAUSED),
     .worker_lost = To(v1::JOB_STATE_PAUSED),
     .restart = kRefuse,
     .cancel = To(v1::JOB_STATE_CANCELLING),
     .pause = kStay,
     .preempt = kRefuse,
     .resume = kRefuse,
     .erase = kRefuse},
    {.from = v1::JOB_STATE_PREEMPTING,
     .schedule = kRefuse,
     .requeue = kRefuse,
     // The worker started before the order arrived.
     .training_started = kStay,
     .report = kStay,
     .finished_succeeded = To(v1::JOB_STATE_SUCCEEDED),
     .finished_failed = To(v1::JOB_STATE_FAILED),
     .finished_cancelled = To(v1::JOB_STATE_FAILED),
     .finished_paused = To(v1::JOB_STATE_QUEUED),
     .worker_lost = To(v1::JOB_STATE_QUEUED),
     .restart = kRefuse,
     .cancel = To(v1::JOB_STATE_CANCELLING),
     .pause = To(v1::JOB_STATE_PAUSING),
     .preempt = kStay,
     .resume = kStay,
     .erase = kRefuse},
    {.from = v1::JOB_STATE_PAUSED,
     .schedule = kRefuse,
     .requeue = kRefuse,
     .training_started = kRefuse,
     .report = kRefuse,
     .finished_succeeded = kRefuse,
     .finished_failed = kRefuse,
     .finished_cancelled = kRefuse,
     .finished_paused = kRefuse,
     .worker_lost = kStay,
     .restart = kRefuse,
     .cancel = To(v1::JOB_STATE_CANCELLED),
     .pause = kStay,
     .preempt = kRefuse,
     .resume = To(v1::JOB_STATE_QUEUED),
     .erase = kRefuse},
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
