#ifndef TANDEM_ENGINE_TRAINING_STEP_SCHEDULE_H_
#define TANDEM_ENGINE_TRAINING_STEP_SCHEDULE_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Steps of a training, counted over all epochs. The last epoch may be cut short.
struct TrainingLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;   // In all.
  int64_t epochs = 1;  // That are begun.

  // Of the epochs or steps that `training` gives.
  static TrainingLength Of(const v1::Training& training, int64_t steps_per_epoch);
  // The epoch, from 1, of the step that is the `steps`-th of all.
  int64_t EpochOf(int64_t steps) const { return (steps - 1) / steps_per_epoch + 1; }
};

// What all replicas do after a step.
struct AfterStep {
  bool report = false;      // Say what was measured since the last report. With any of the others.
  bool ends_epoch = false;  // The epoch in progress ends, whole or, with the training, cut short.
  bool validate = false;
  bool checkpoint = false;
  // Why no step follows, whatever is measured: COMPLETED, TIME_LIMIT or PAUSE_REQUESTED. UNSPECIFIED where
  // one does.
  v1::StateReason end = v1::STATE_REASON_UNSPECIFIED;

  // Whether there is more to do than a report.
  bool settles() const { return ends_epoch || validate || checkpoint || end != v1::STATE_REASON_UNSPECIFIED; }
};

// What follows each step. The most of it follows from the step's number. What depends on the clock or on a
// command the first replica decides before a step; the others learn of it after the step, whose reduction
// they took together with the first. Steps count from 0 over all epochs.
class StepSchedule {
 public:
  // `spec` has its defaults. Training begins with `first_step`, and has taken `seconds_before` already. Where
  // `pause` is true before a step, training is paused after it. Pointers outlive the schedule.
  StepSchedule(const v1::JobSpec& spec, const TrainingLength& length, bool validates, int64_t first_step,
               double seconds_before, const std::atomic<bool>* pause, const Clock* clock);

  // The first replica calls this when the first step begins.
  void Start() { start_time_ = last_time_ = clock_->Elapsed(); }
  // The first replica calls this when steps go on after validation: the time until then does not count for
  // reports.
  void Restart() { last_time_ = clock_->Elapsed(); }
  // The first replica calls this before each step.
  void Decide(int64_t step);

  // What follows `step`, which has been taken. Thread-safe.
  AfterStep After(int64_t step) const;

 private:
  static constexpr int kReport = 1, kTimeLimit = 2, kPause = 4, kCauses = 8;

  const v1::ReportInterval report_;
  const v1::ValidationInterval validation_;
  const v1::Checkpointing checkpoints_;
  const TrainingLength length_;
  const bool validates_;
  const absl::Duration time_limit_;
  const std::atomic<bool>* const pause_;
  const Clock* const clock_;

  // Of the first replica alone.
  int64_t reported_steps_;
  absl::Duration start_time_;
  absl::Duration last_time_;

  // The newest even and odd steps with a cause, as step times kCauses plus the causes: another replica may
  // still ask about a step while the first decides about the one behind it, never about a later one, as each
  // step is reduced together.
  std::atomic<int64_t> causes_[2] = {-1, -1};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_STEP_SCHEDULE_H_
