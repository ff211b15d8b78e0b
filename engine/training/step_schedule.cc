#include "engine/training/step_schedule.h"

#include <utility>

namespace tandem {

TrainingLength TrainingLength::Of(const v1::Training& training, int64_t steps_per_epoch) {
  TrainingLength length;
  length.steps_per_epoch = steps_per_epoch;
  length.steps = training.steps() > 0 ? training.steps() : training.epochs() * steps_per_epoch;
  length.epochs = (length.steps + steps_per_epoch - 1) / steps_per_epoch;
  return length;
}

StepSchedule::StepSchedule(const v1::JobSpec& spec, Options options)
    : report_(spec.training().report()),
      validation_(spec.training().validation()),
      checkpoints_(spec.checkpoints()),
      time_limit_(spec.training().early_stopping().has_max_seconds()
                      ? absl::Seconds(spec.training().early_stopping().max_seconds() - options.seconds_before)
                      : absl::InfiniteDuration()),
      options_(std::move(options)),
      reported_steps_(options_.first_step),
      start_time_(options_.clock->Elapsed()),
      last_time_(start_time_),
      checkpoint_time_(start_time_) {}

void StepSchedule::Start() {
  MutexLock lock(&mutex_);
  start_time_ = last_time_ = checkpoint_time_ = options_.clock->Elapsed();
}

void StepSchedule::Restart() {
  MutexLock lock(&mutex_);
  last_time_ = options_.clock->Elapsed();
}

StepSignals StepSchedule::Look() {
  MutexLock lock(&mutex_);
  return LookLocked();
}

StepSignals StepSchedule::LookLocked() const {
  const absl::Duration now = options_.clock->Elapsed();
  return {.report_is_due =
              report_.every_seconds() > 0 && now - last_time_ >= absl::Seconds(report_.every_seconds()),
          .checkpoint_is_due = checkpoints_.every_minutes() > 0 &&
                               now - checkpoint_time_ >= absl::Minutes(checkpoints_.every_minutes()),
          .time_is_up = now - start_time_ >= time_limit_,
          .pause = options_.pause->load(std::memory_order_relaxed)};
}

AfterStep StepSchedule::After(int64_t step) { return Take(step, nullptr); }

AfterStep StepSchedule::After(int64_t step, const StepSignals& signals) { return Take(step, &signals); }

AfterStep StepSchedule::Take(int64_t step, const StepSignals* signals) {
  MutexLock lock(&mutex_);
  const auto [found, is_first] = decided_.try_emplace(step);
  Decided& decided = found->second;
  if (is_first)
    decided = {.after = Decide(step, signals == nullptr ? LookLocked() : *signals),
               .left = options_.replicas};
  const AfterStep after = decided.after;
  if (--decided.left == 0) decided_.erase(found);
  return after;
}

AfterStep StepSchedule::Decide(int64_t step, const StepSignals& signals) {
  const TrainingLength& length = options_.length;
  const int64_t steps = step + 1;
  const bool whole_epoch = steps % length.steps_per_epoch == 0;
  const int64_t epoch = steps / length.steps_per_epoch;  // Where it is whole.
  const auto is_due = [&](const auto& interval) {
    return (interval.every_steps() > 0 && steps % interval.every_steps() == 0) ||
           (interval.every_epochs() > 0 && whole_epoch && epoch % interval.every_epochs() == 0);
  };
  AfterStep after;
  if (steps == length.steps) {
    after.end = v1::STATE_REASON_COMPLETED;
  } else if (signals.time_is_up) {
    after.end = v1::STATE_REASON_TIME_LIMIT;
  } else if (signals.pause) {
    after.end = v1::STATE_REASON_PAUSE_REQUESTED;
  }
  const bool ends = after.end != v1::STATE_REASON_UNSPECIFIED;
  const bool pauses = after.end == v1::STATE_REASON_PAUSE_REQUESTED;
  after.ends_epoch = whole_epoch || (ends && !pauses);
  after.validate = options_.validates && (is_due(validation_) || (ends && !pauses));
  after.checkpoint = !checkpoints_.off() && (is_due(checkpoints_) || signals.checkpoint_is_due || ends);
  if (signals.checkpoint_is_due) checkpoint_time_ = options_.clock->Elapsed();
  after.report = after.settles() || signals.report_is_due ||
                 (report_.every_steps() > 0 && steps - reported_steps_ >= report_.every_steps()) ||
                 (options_.reports_after != nullptr && options_.reports_after(step));
  if (after.report) {
    reported_steps_ = steps;
    last_time_ = options_.clock->Elapsed();
  }
  return after;
}

}  // namespace tandem
