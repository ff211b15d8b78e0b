#include "engine/training/step_schedule.h"

#include <utility>

namespace tandem {

TrainingLength TrainingLength::Of(const v1::Training& training, int64_t steps_per_epoch,
                                  int64_t epoch_shift) {
  TrainingLength length;
  length.steps_per_epoch = steps_per_epoch;
  length.epoch_shift = epoch_shift;
  length.steps = training.steps() > 0 ? training.steps() : training.epochs() * steps_per_epoch - epoch_shift;
  length.epochs = (length.steps + epoch_shift + steps_per_epoch - 1) / steps_per_epoch;
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

int64_t StepSchedule::StepsFrom(int64_t step, int64_t most) {
  MutexLock lock(&mutex_);
  const auto [found, is_first] = groups_.try_emplace(step);
  Group& group = found->second;
  if (is_first) {
    group.left = options_.replicas;
    while (group.steps < most && !SettlesAfter(step + group.steps)) ++group.steps;
  }
  const int64_t steps = group.steps;
  if (--group.left == 0) groups_.erase(found);
  return steps;
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

template <typename Interval>
bool StepSchedule::IsDue(const Interval& interval, int64_t steps) const {
  const TrainingLength& length = options_.length;
  return (interval.every_steps() > 0 && steps % interval.every_steps() == 0) ||
         (interval.every_epochs() > 0 && length.StepOfEpoch(steps) == 0 &&
          length.WholeEpochs(steps) % interval.every_epochs() == 0);
}

bool StepSchedule::ReportsAfter(int64_t steps) const {
  return (report_.every_steps() > 0 && steps - reported_steps_ >= report_.every_steps()) ||
         (options_.reports_after != nullptr && options_.reports_after(steps - 1));
}

bool StepSchedule::SettlesAfter(int64_t steps) const {
  return steps >= options_.length.steps || options_.length.StepOfEpoch(steps) == 0 ||
         (options_.validates && IsDue(validation_, steps)) ||
         (!checkpoints_.off() && IsDue(checkpoints_, steps)) || ReportsAfter(steps);
}

AfterStep StepSchedule::Decide(int64_t step, const StepSignals& signals) {
  const TrainingLength& length = options_.length;
  const int64_t steps = step + 1;
  const bool whole_epoch = length.StepOfEpoch(steps) == 0;
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
  after.validate = options_.validates && (IsDue(validation_, steps) || (ends && !pauses));
  after.checkpoint = !checkpoints_.off() && (IsDue(checkpoints_, steps) || signals.checkpoint_is_due || ends);
  if (signals.checkpoint_is_due) checkpoint_time_ = options_.clock->Elapsed();
  after.report = after.settles() || signals.report_is_due || ReportsAfter(steps);
  if (after.report) {
    reported_steps_ = steps;
    last_time_ = options_.clock->Elapsed();
  }
  return after;
}

}  // namespace tandem
