#include "engine/schedules/learning_rate.h"

#include <algorithm>

#include "engine/schedules/curve.h"

namespace tandem {
namespace {

// A missing unit stays missing in the spec, so that it follows a kind that a fork changes.
v1::ScheduleUnit UnitOf(const v1::Schedule& schedule) {
  if (schedule.unit() != v1::SCHEDULE_UNIT_UNSPECIFIED) return schedule.unit();
  return schedule.has_one_cycle() || schedule.has_inverse_sqrt() ? v1::SCHEDULE_UNIT_STEPS
                                                                 : v1::SCHEDULE_UNIT_EPOCHS;
}

v1::ScheduleUnit UnitOfWarmup(const v1::Schedule& schedule) {
  const v1::ScheduleUnit unit = schedule.warmup().unit();
  return unit == v1::SCHEDULE_UNIT_UNSPECIFIED ? UnitOf(schedule) : unit;
}

// Returns the first step after this number of whole epochs.
int64_t StepAfterEpochs(const LearningRate::Options& options, int64_t epochs) {
  for (const EarlierEpochs& part : options.earlier_epochs) {
    const __int128 step = static_cast<__int128>(epochs) * part.steps_per_epoch - part.epoch_shift;
    if (step < part.end) return static_cast<int64_t>(step);
  }
  return epochs * options.steps_per_epoch - options.epoch_shift;
}

// Returns the epochs before the step as a number of current steps, rounded down.
int64_t EpochsBefore(const LearningRate::Options& options, int64_t step) {
  for (const EarlierEpochs& part : options.earlier_epochs) {
    if (step >= part.end) continue;
    const __int128 steps = static_cast<__int128>(step + part.epoch_shift) * options.steps_per_epoch;
    // A damaged checkpoint may have any numbers.
    const __int128 most = static_cast<__int128>(options.steps) + options.epoch_shift;
    return static_cast<int64_t>(std::min(steps / part.steps_per_epoch, most));
  }
  return step + options.epoch_shift;
}

}  // namespace

LearningRate::LearningRate(const Options& options)
    : steps_per_epoch_(options.steps_per_epoch),
      epoch_shift_(options.epoch_shift),
      counts_epochs_(UnitOf(options.schedule) == v1::SCHEDULE_UNIT_EPOCHS) {
  const v1::Schedule& schedule = options.schedule;
  if (schedule.has_warmup()) {
    warmup_length_ = schedule.warmup().length();
    start_factor_ = schedule.warmup().start_factor();
    warmup_counts_epochs_ = UnitOfWarmup(schedule) == v1::SCHEDULE_UNIT_EPOCHS;
    warmup_end_ = warmup_counts_epochs_ ? StepAfterEpochs(options, warmup_length_) : warmup_length_;
    schedule_begin_ = counts_epochs_ ? EpochsBefore(options, warmup_end_) : warmup_end_;
  }
  const int64_t steps_left = std::max<int64_t>(1, ScheduleStep(options.steps) - schedule_begin_);
  const int64_t length = counts_epochs_ ? (steps_left + steps_per_epoch_ - 1) / steps_per_epoch_ : steps_left;
  const double scale = schedule.linear_scaling() ? options.replicas : 1;
  curve_ = MakeCurve(schedule, options.learning_rate, scale, length);
  if (schedule.has_plateau()) {
    plateau_ = std::make_unique<Plateau>(schedule.plateau(), scale * options.learning_rate);
  }
}

LearningRate::~LearningRate() = default;

double LearningRate::RateAfterWarmup(int64_t t) const {
  if (plateau_ != nullptr) return plateau_->rate();
  return curve_(counts_epochs_ ? t / steps_per_epoch_ : t);
}

double LearningRate::Rate(int64_t step) const {
  if (step >= warmup_end_) {
    return RateAfterWarmup(std::max<int64_t>(0, ScheduleStep(step) - schedule_begin_));
  }
  const int64_t t = warmup_counts_epochs_ ? (step + epoch_shift_) / steps_per_epoch_ : step;
  const double share = static_cast<double>(t) / static_cast<double>(warmup_length_);
  return RateAfterWarmup(0) * (start_factor_ + (1 - start_factor_) * share);
}

void LearningRate::EndEpoch(int64_t steps, double measure, bool smaller_is_better) {
  if (plateau_ != nullptr && steps > warmup_end_) plateau_->Observe(measure, smaller_is_better);
}

std::optional<Plateau::State> LearningRate::state() const {
  if (plateau_ == nullptr) return std::nullopt;
  return plateau_->state();
}

void LearningRate::Restore(const Plateau::State& state) {
  if (plateau_ != nullptr) plateau_->Restore(state);
}

}  // namespace tandem
