#include "engine/training/signal_line.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(100);
constexpr int64_t kMaxSteps = 64;

}  // namespace

int64_t SignalLine::Pace() {
  const absl::Duration now = options_.clock->Elapsed();
  const bool soon = now - std::exchange(look_time_, now) < kLookEvery;
  look_steps_ = std::clamp<int64_t>(soon ? look_steps_ * 2 : look_steps_ / 2, 1, kMaxSteps);
  return look_steps_;
}

absl::StatusOr<AfterStep> SignalLine::After(int64_t step) {
  const AveragingPolicy& averaging = *options_.averaging;
  if (step < next_look_ || (averaging.steps_alone() && !averaging.AveragesAfter(step))) {
    return options_.schedule->After(step, StepSignals());
  }
  // Whether a report is due, the time is up, training is to pause, and a checkpoint is due. Then the number
  // of steps until the next look.
  double told[5] = {};
  if (options_.communicator->rank() == 0) {
    const StepSignals signals = options_.schedule->Look();
    told[0] = signals.report_is_due ? 1 : 0;
    told[1] = signals.time_is_up ? 1 : 0;
    told[2] = signals.pause ? 1 : 0;
    told[3] = signals.checkpoint_is_due ? 1 : 0;
    told[4] = static_cast<double>(Pace());
  }
  TANDEM_RETURN_IF_ERROR(options_.communicator->Broadcast({told, 5, DType::kFloat64}, 0));
  next_look_ = step + static_cast<int64_t>(told[4]);
  return options_.schedule->After(step, {.report_is_due = told[0] != 0,
                                         .checkpoint_is_due = told[3] != 0,
                                         .time_is_up = told[1] != 0,
                                         .pause = told[2] != 0});
}

}  // namespace tandem
