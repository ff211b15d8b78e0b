#ifndef TANDEM_SERVER_JOBS_TRANSITIONS_H_
#define TANDEM_SERVER_JOBS_TRANSITIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// The things that can happen to a job.
enum class Trigger {
  kSchedule,           // devices were leased for the job
  kRequeue,            // its worker never started, and never will
  kTrainingStarted,    // the worker says that training started
  kReport,             // the worker reports progress, an epoch, an artifact or a notice
  kFinishedSucceeded,  // the worker says that it trained to the end
  kFinishedFailed,     // the worker says that training failed
  kFinishedCancelled,  // the worker says that it stopped because of a cancellation
  kFinishedPaused,     // the worker says that it stopped because of a pause or preemption
  kWorkerLost,         // the worker ended without a report, or could not be started
  kRestart,            // the same, and the job restarts by itself
  kCancel,             // somebody asks to cancel it
  kPause,              // somebody asks to pause it
  kPreempt,            // a job of higher priority needs its devices
  kResume,             // somebody asks to resume it
  kDelete,             // somebody asks to delete it
};
inline constexpr Trigger kTriggers[] = {
    Trigger::kSchedule,
    Trigger::kRequeue,
    Trigger::kTrainingStarted,
    Trigger::kReport,
    Trigger::kFinishedSucceeded,
    Trigger::kFinishedFailed,
    Trigger::kFinishedCancelled,
    Trigger::kFinishedPaused,
    Trigger::kWorkerLost,
    Trigger::kRestart,
    Trigger::kCancel,
    Trigger::kPause,
    Trigger::kPreempt,
    Trigger::kResume,
    Trigger::kDelete,
};

// The result of a trigger in a state.
struct Transition {
  enum class Outcome {
    kRefuse,  // an error: the state does not allow the trigger
    kStay,    // allowed, and the state stays
    kMove,    // the state becomes `to`
  };
  Outcome outcome = Outcome::kRefuse;
  v1::JobState to = v1::JOB_STATE_UNSPECIFIED;
};

// The transition table of jobs' states, the only place that defines the allowed changes. Pure.
Transition NextState(v1::JobState from, Trigger trigger);

// Returns a name for messages: "schedule", "training started", ...
absl::string_view TriggerName(Trigger trigger);

// Returns a name for messages: "RUNNING", ...
std::string StateName(v1::JobState state);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_TRANSITIONS_H_
