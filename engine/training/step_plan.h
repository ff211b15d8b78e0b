#ifndef TANDEM_ENGINE_TRAINING_STEP_PLAN_H_
#define TANDEM_ENGINE_TRAINING_STEP_PLAN_H_

#include <cstdint>

#include "engine/training/averaging_policy.h"
#include "engine/training/step_signals.h"
#include "engine/training/training_length.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The actions of all replicas after a step.
struct AfterStep {
  bool report = false;      // Report the measurements since the last report. True with any other action.
  bool ends_epoch = false;  // The current epoch ends, whole or cut short with the training.
  bool validate = false;
  bool checkpoint = false;
  // Training has ended by its measurements: the finished network is validated again.
  bool is_finished = false;
  // Why no step follows, apart from measurements: COMPLETED, TIME_LIMIT or PAUSE_REQUESTED. UNSPECIFIED if a
  // step follows.
  v1::StateReason end = v1::STATE_REASON_UNSPECIFIED;

  // Returns whether training ends for good, apart from measurements.
  bool ends_training() const {
    return end != v1::STATE_REASON_UNSPECIFIED && end != v1::STATE_REASON_PAUSE_REQUESTED;
  }
  // Returns whether there is an action other than a report.
  bool settles() const { return ends_epoch || validate || checkpoint || end != v1::STATE_REASON_UNSPECIFIED; }
};

// Decides the actions after each step. All answers depend on the arguments alone, so ranks that ask the same
// get the same answer. Steps count from 0 over all epochs. `reported_steps` is the number of steps up to the
// last report, or the step of the loaded checkpoint. Thread-safe: immutable.
class StepPlan {
 public:
  struct Options {
    TrainingLength length;
    bool validates = false;
    // Must outlive the plan. Null: replicas are never averaged.
    const AveragingPolicy* averaging = nullptr;
  };
  // `spec` has its defaults.
  StepPlan(const v1::JobSpec& spec, const Options& options);

  // Returns the number of steps that replicas take from `step` on without a look at anything else: from 1 to
  // `most`. The steps end where an action always follows, or an averaging.
  int64_t StepsFrom(int64_t step, int64_t reported_steps, int64_t most) const;

  // Returns whether an action follows `step`, whatever the signals.
  bool ActsAfter(int64_t step, int64_t reported_steps) const;

  // Returns the actions after `step`.
  AfterStep After(int64_t step, int64_t reported_steps, const StepSignals& signals) const;

 private:
  // Returns whether an interval ends with step number `steps`, from 1.
  template <typename Interval>
  bool IsDue(const Interval& interval, int64_t steps) const;
  // Returns whether a report follows step number `steps`, from 1, whatever the signals.
  bool Reports(int64_t steps, int64_t reported_steps) const;

  const v1::ReportInterval report_;
  const v1::ValidationInterval validation_;
  const v1::Checkpointing checkpoints_;
  const Options options_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_STEP_PLAN_H_
