#ifndef TANDEM_ENGINE_TRAINING_SIGNAL_WATCH_H_
#define TANDEM_ENGINE_TRAINING_SIGNAL_WATCH_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/training/launch_size.h"
#include "engine/training/step_plan.h"
#include "engine/training/step_signals.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Rank 0's view of the clock and of commands. Used by rank 0's thread, except Pause.
class SignalWatch {
 public:
  // `spec` has its defaults. `clock` must outlive this object.
  SignalWatch(const v1::JobSpec& spec, const Clock* clock);

  // From now on, the signal to pause is set. Any thread may call it at any time.
  void Pause() { pause_.store(true, std::memory_order_relaxed); }

  // Begins the first step. `seconds_before` is the time of earlier runs. It counts for the time limit.
  void Start(double seconds_before);
  // Ends an interruption, such as a validation. The time since the last report does not count for the next
  // report.
  void Restart() { report_time_ = clock_->Elapsed(); }

  // Reports that rank 0's device received `steps` steps. `disturbed` as in LaunchSize::Took.
  void Took(int64_t steps, bool disturbed) { launch_.Took(steps, disturbed); }

  // Returns the current signals. A signal stays until its Acted.
  StepSignals Look() const;

  // The ranks act on `signals` with these actions.
  void Acted(const StepSignals& signals, const AfterStep& after);

 private:
  const absl::Duration report_interval_;      // 0: reports do not depend on the clock.
  const absl::Duration checkpoint_interval_;  // 0: checkpoints do not depend on the clock.
  const absl::Duration time_limit_;           // Of all runs.
  const Clock* const clock_;
  LaunchSize launch_;
  std::atomic<bool> pause_{false};
  absl::Duration start_time_;   // Less the time of earlier runs.
  absl::Duration report_time_;  // Of the last report.
  // Of the last checkpoint that the clock triggered.
  absl::Duration checkpoint_time_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SIGNAL_WATCH_H_
