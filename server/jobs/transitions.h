#ifndef TANDEM_SERVER_JOBS_TRANSITIONS_H_
#define TANDEM_SERVER_JOBS_TRANSITIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// What can happen to a job.
enum class Trigger {
  kSchedule,           // devices were leased for it
  kRequeue,            // its worker was never started, and cannot be any more
  kTrainingStarted,    // the worker says that training began
  kReport,             // the worker reports progress, an epoch, an artifact or a notice
  kFinishedSucceeded,  // the worker says that it trained to the end
  kFinishedFailed,     // the worker says that it gave up
  kFinishedCancelled,  // the worker says that it stopped because it was told to
  kFinishedPaused,     // the worker says that it stopped for now because it was told to
  kWorkerLost,         // the worker is gone without having said how it ended, or could not be started
  kRestart,            // the same, and the job is to go on by itself
  kCancel,             // someone asks it to stop
  kPause,              // someone asks it to stop for now
  kPreempt,            // a job of higher priority needs its devices
  kResume,             // someone asks it to go on
  kDelete,             // someone asks for its removal
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

// What comes of a trigger in a state.
struct Transition {
  enum class Outcome {
    kRefuse,  // an error: the trigger has no place here
    kStay,    // allowed, and the state stays
    kMove,    // the state becomes `to`
  };
  Outcome outcome = Outcome::kRefuse;
  v1::JobState to = v1::JOB_STATE_UNSPECIFIED;
};

// The table of a job's states: the one place that says which change is possible. Pure.
Transition NextState(v1::JobState from, Trigger trigger);

// For messages: "schedule", "training started", ...
absl::string_view TriggerName(Trigger trigger);

// For messages: "RUNNING", ...
std::string StateName(v1::JobState state);

}  // namespace tandem

#endif  // TANDEM_SERVER_JOBS_TRANSITIONS_H_
