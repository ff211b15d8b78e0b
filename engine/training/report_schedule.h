#ifndef TANDEM_ENGINE_TRAINING_REPORT_SCHEDULE_H_
#define TANDEM_ENGINE_TRAINING_REPORT_SCHEDULE_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// After which steps all replicas report. The first replica decides that before a step, perhaps by the clock;
// the others learn of it after the step, whose reduction they took together with the first. Steps count from
// 0 over all epochs.
class ReportSchedule {
 public:
  // `interval` has its defaults.
  ReportSchedule(const v1::ReportInterval& interval, int64_t steps_per_epoch, const Clock* clock)
      : interval_(interval), steps_per_epoch_(steps_per_epoch), clock_(clock), last_time_(clock->Elapsed()) {}

  // The first replica calls this when steps begin, or go on after validation: the time until then does not
  // count.
  void Restart() { last_time_ = clock_->Elapsed(); }

  // The first replica calls this before each step.
  void Decide(int64_t step) {
    const bool by_steps =
        interval_.every_steps() > 0 && step + 1 - reported_steps_ >= interval_.every_steps();
    const bool by_time = interval_.every_seconds() > 0 &&
                         clock_->Elapsed() - last_time_ >= absl::Seconds(interval_.every_seconds());
    if (!by_steps && !by_time && !IsLastOfEpoch(step)) return;
    reported_steps_ = step + 1;
    last_time_ = clock_->Elapsed();
    due_[step % 2].store(step, std::memory_order_release);
  }

  // Whether to report after `step`, which has been taken. Thread-safe.
  bool IsDue(int64_t step) const { return due_[step % 2].load(std::memory_order_acquire) == step; }

  bool IsLastOfEpoch(int64_t step) const { return (step + 1) % steps_per_epoch_ == 0; }

 private:
  const v1::ReportInterval interval_;
  const int64_t steps_per_epoch_;
  const Clock* const clock_;
  // Of the first replica alone.
  int64_t reported_steps_ = 0;
  absl::Duration last_time_;

  // The newest even and odd steps with a report: another replica may still ask about a step while the first
  // decides about the one behind it, never about a later one, as each step is reduced together.
  std::atomic<int64_t> due_[2] = {-1, -1};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPORT_SCHEDULE_H_
