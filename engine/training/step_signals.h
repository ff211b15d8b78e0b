#ifndef TANDEM_ENGINE_TRAINING_STEP_SIGNALS_H_
#define TANDEM_ENGINE_TRAINING_STEP_SIGNALS_H_

#include <cstdint>

namespace tandem {

// Everything that no step's number tells: the clock, commands, and measured times. Rank 0 sees the signals,
// and all ranks act on them after the same step (SignalLine).
struct StepSignals {
  bool report_is_due = false;
  bool checkpoint_is_due = false;
  bool time_is_up = false;
  bool pause = false;
  // The largest number of steps that a device receives at a time.
  int64_t launch_steps = 1;

  // Returns whether an action follows.
  bool any() const { return report_is_due || checkpoint_is_due || time_is_up || pause; }
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_STEP_SIGNALS_H_
