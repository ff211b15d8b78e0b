#include "engine/training/signal_watch.h"

namespace tandem {

SignalWatch::SignalWatch(const v1::JobSpec& spec, const Clock* clock)
    : report_interval_(absl::Seconds(spec.training().report().every_seconds())),
      checkpoint_interval_(spec.checkpoints().off() ? absl::ZeroDuration()
                                                    : absl::Minutes(spec.checkpoints().every_minutes())),
      time_limit_(spec.training().early_stopping().has_max_seconds()
                      ? absl::Seconds(spec.training().early_stopping().max_seconds())
                      : absl::InfiniteDuration()),
      clock_(clock),
      launch_(spec.gpu().steps_per_launch(), clock) {
  Start(/*seconds_before=*/0);
}

void SignalWatch::Start(double seconds_before) {
  report_time_ = checkpoint_time_ = clock_->Elapsed();
  start_time_ = report_time_ - absl::Seconds(seconds_before);
}

StepSignals SignalWatch::Look() const {
  const absl::Duration now = clock_->Elapsed();
  const auto is_due = [now](absl::Duration interval, absl::Duration since) {
    return interval > absl::ZeroDuration() && now - since >= interval;
  };
  return {.report_is_due = is_due(report_interval_, report_time_),
          .checkpoint_is_due = is_due(checkpoint_interval_, checkpoint_time_),
          .time_is_up = now - start_time_ >= time_limit_,
          .pause = pause_.load(std::memory_order_relaxed),
          .launch_steps = launch_.size()};
}

void SignalWatch::Acted(const StepSignals& signals, const AfterStep& after) {
  if (signals.checkpoint_is_due) checkpoint_time_ = clock_->Elapsed();
  if (after.report) report_time_ = clock_->Elapsed();
}

}  // namespace tandem
