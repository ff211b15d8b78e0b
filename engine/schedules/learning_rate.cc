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
    warmup_steps_ = warmup_counts_epochs_ ? warmup_length_ * steps_per_epoch_ : warmup_length_;
  }
  const int64_t steps_left = std::max<int64_t>(1, ScheduleStep(options.steps) - warmup_steps_);
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
  const int64_t warmup_step = WarmupStep(step);
  // The warm-up and the schedule may count in different units.
  if (warmup_step >= warmup_steps_) {
    return RateAfterWarmup(std::max<int64_t>(0, ScheduleStep(step) - warmup_steps_));
  }
  const int64_t t = warmup_counts_epochs_ ? warmup_step / steps_per_epoch_ : warmup_step;
  const double share = static_cast<double>(t) / static_cast<double>(warmup_length_);
  return RateAfterWarmup(0) * (start_factor_ + (1 - start_factor_) * share);
}

void LearningRate::EndEpoch(int64_t steps, double measure, bool smaller_is_better) {
  if (plateau_ != nullptr && WarmupStep(steps) > warmup_steps_) plateau_->Observe(measure, smaller_is_better);
}

std::optional<Plateau::State> LearningRate::state() const {
  if (plateau_ == nullptr) return std::nullopt;
  return plateau_->state();
}

void LearningRate::Restore(const Plateau::State& state) {
  if (plateau_ != nullptr) plateau_->Restore(state);
}

}  // namespace tandem
