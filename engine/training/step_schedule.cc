#include "engine/training/step_schedule.h"

namespace tandem {

TrainingLength TrainingLength::Of(const v1::Training& training, int64_t steps_per_epoch) {
  TrainingLength length;
  length.steps_per_epoch = steps_per_epoch;
  length.steps = training.steps() > 0 ? training.steps() : training.epochs() * steps_per_epoch;
  length.epochs = (length.steps + steps_per_epoch - 1) / steps_per_epoch;
  return length;
}

StepSchedule::StepSchedule(const v1::JobSpec& spec, const TrainingLength& length, bool validates,
                           int64_t first_step, double seconds_before, const std::atomic<bool>* pause,
                           const Clock* clock)
    : report_(spec.training().report()),
      validation_(spec.training().validation()),
      checkpoints_(spec.checkpoints()),
      length_(length),
      validates_(validates),
      time_limit_(spec.training().early_stopping().has_max_seconds()
                      ? absl::Seconds(spec.training().early_stopping().max_seconds() - seconds_before)
                      : absl::InfiniteDuration()),
      pause_(pause),
      clock_(clock),
      reported_steps_(first_step),
      start_time_(clock->Elapsed()),
      last_time_(start_time_) {}

void StepSchedule::Decide(int64_t step) {
  int causes = 0;
  const absl::Duration now = clock_->Elapsed();
  if (pause_->load(std::memory_order_relaxed)) causes |= kPause;
  if (now - start_time_ >= time_limit_) causes |= kTimeLimit;
  if (report_.every_steps() > 0 && step + 1 - reported_steps_ >= report_.every_steps()) causes |= kReport;
  if (report_.every_seconds() > 0 && now - last_time_ >= absl::Seconds(report_.every_seconds())) {
    causes |= kReport;
  }
  if (causes != 0) causes_[step % 2].store(step * kCauses + causes, std::memory_order_release);
  if (!After(step).report) return;
  reported_steps_ = step + 1;
  last_time_ = now;
}

AfterStep StepSchedule::After(int64_t step) const {
  const int64_t noted = causes_[step % 2].load(std::memory_order_acquire);
  const int64_t causes = noted >= 0 && noted / kCauses == step ? noted % kCauses : 0;
  const int64_t steps = step + 1;
  const bool whole_epoch = steps % length_.steps_per_epoch == 0;
  const int64_t epoch = steps / length_.steps_per_epoch;  // Where it is whole.
  const auto is_due = [&](const auto& interval) {
    return (interval.every_steps() > 0 && steps % interval.every_steps() == 0) ||
           (interval.every_epochs() > 0 && whole_epoch && epoch % interval.every_epochs() == 0);
  };
  AfterStep after;
  if (steps == length_.steps) {
    after.end = v1::STATE_REASON_COMPLETED;
  } else if ((causes & kTimeLimit) != 0) {
    after.end = v1::STATE_REASON_TIME_LIMIT;
  } else if ((causes & kPause) != 0) {
    after.end = v1::STATE_REASON_PAUSE_REQUESTED;
  }
  const bool ends = after.end != v1::STATE_REASON_UNSPECIFIED;
  const bool pauses = after.end == v1::STATE_REASON_PAUSE_REQUESTED;
  after.ends_epoch = whole_epoch || (ends && !pauses);
  after.validate = validates_ && (is_due(validation_) || (ends && !pauses));
  after.checkpoint = !checkpoints_.off() && (is_due(checkpoints_) || ends);
  after.report = (causes & kReport) != 0 || after.settles();
  return after;
}

}  // namespace tandem
