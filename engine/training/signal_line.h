#ifndef TANDEM_ENGINE_TRAINING_SIGNAL_LINE_H_
#define TANDEM_ENGINE_TRAINING_SIGNAL_LINE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/backend/communicator.h"
#include "engine/base/clock.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/step_schedule.h"

namespace tandem {

// How replicas of several workers follow what the clock and commands say: rank 0 looks and tells all others,
// every tenth of a second or so, so that telling costs next to nothing; the number of steps until it looks
// again is told with it. Where replicas step alone, they are told at averagings only. One for each replica,
// of its thread.
class SignalLine {
 public:
  // All of these outlive it.
  struct Options {
    StepSchedule* schedule = nullptr;  // This worker's.
    const AveragingPolicy* averaging = nullptr;
    const Clock* clock = nullptr;
    Communicator* communicator = nullptr;
  };
  explicit SignalLine(const Options& options) : options_(options) {}

  // What follows `step`: StepSchedule::After. All replicas call this for the same steps.
  absl::StatusOr<AfterStep> After(int64_t step);

 private:
  // Steps until rank 0 looks again.
  int64_t Pace();

  const Options options_;
  int64_t next_look_ = 0;  // The step.
  // Of rank 0: when it last looked, and for how many steps then.
  absl::Duration look_time_ = absl::ZeroDuration();
  int64_t look_steps_ = 1;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SIGNAL_LINE_H_
