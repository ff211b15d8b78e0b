#include "engine/training/step_plan.h"

namespace tandem {

StepPlan::StepPlan(const v1::JobSpec& spec, const Options& options)
    : report_(spec.training().report()),
      validation_(spec.training().validation()),
      checkpoints_(spec.checkpoints()),
      options_(options) {}

template <typename Interval>
bool StepPlan::IsDue(const Interval& interval, int64_t steps) const {
  const TrainingLength& length = options_.length;
  return (interval.every_steps() > 0 && steps % interval.every_steps() == 0) ||
         (interval.every_epochs() > 0 && length.StepOfEpoch(steps) == 0 &&
          length.WholeEpochs(steps) % interval.every_epochs() == 0);
}

bool StepPlan::Reports(int64_t steps, int64_t reported_steps) const {
  return (report_.every_steps() > 0 && steps - reported_steps >= report_.every_steps()) ||
         (options_.averaging != nullptr && options_.averaging->ReportsAfter(steps - 1));
}

bool StepPlan::ActsAfter(int64_t step, int64_t reported_steps) const {
  const int64_t steps = step + 1;
  return steps >= options_.length.steps || options_.length.StepOfEpoch(steps) == 0 ||
         (options_.validates && IsDue(validation_, steps)) ||
         (!checkpoints_.off() && IsDue(checkpoints_, steps)) || Reports(steps, reported_steps);
}

int64_t StepPlan::StepsFrom(int64_t step, int64_t reported_steps, int64_t most) const {
  const auto stops_after = [&](int64_t last) {
    return ActsAfter(last, reported_steps) ||
           (options_.averaging != nullptr && options_.averaging->AveragesAfter(last));
  };
  int64_t steps = 1;
  while (steps < most && !stops_after(step + steps - 1)) ++steps;
  return steps;
}

AfterStep StepPlan::After(int64_t step, int64_t reported_steps, const StepSignals& signals) const {
  const TrainingLength& length = options_.length;
  const int64_t steps = step + 1;
  AfterStep after;
  if (steps == length.steps) {
    after.end = v1::STATE_REASON_COMPLETED;
  } else if (signals.time_is_up) {
    after.end = v1::STATE_REASON_TIME_LIMIT;
  } else if (signals.pause) {
    after.end = v1::STATE_REASON_PAUSE_REQUESTED;
  }
  const bool ends = after.end != v1::STATE_REASON_UNSPECIFIED;
  after.ends_epoch = length.StepOfEpoch(steps) == 0 || after.ends_training();
  after.validate = options_.validates && (IsDue(validation_, steps) || after.ends_training());
  after.checkpoint = !checkpoints_.off() && (IsDue(checkpoints_, steps) || signals.checkpoint_is_due || ends);
  after.report = after.settles() || signals.report_is_due || Reports(steps, reported_steps);
  return after;
}

}  // namespace tandem
