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

// Distributes the clock's and the commands' signals to the replicas of several workers. Rank 0 looks about
// every tenth of a second and broadcasts the signals, so the cost is small. It also broadcasts the number of
// steps until the next look. Replicas that take their own steps are told at averagings only. Each replica has
// its own object, used by its thread alone.
class SignalLine {
 public:
  // All pointers must outlive this object.
  struct Options {
    StepSchedule* schedule = nullptr;  // The schedule of this worker.
    const AveragingPolicy* averaging = nullptr;
    const Clock* clock = nullptr;
    Communicator* communicator = nullptr;
  };
  explicit SignalLine(const Options& options) : options_(options) {}

  // Returns StepSchedule::After of `step`. All replicas must call this for the same steps.
  absl::StatusOr<AfterStep> After(int64_t step);

 private:
  // Returns the number of steps until rank 0 looks again.
  int64_t Pace();

  const Options options_;
  int64_t next_look_ = 0;  // The step.
  // For rank 0: the time of the last look, and the number of steps it covered.
  absl::Duration look_time_ = absl::ZeroDuration();
  int64_t look_steps_ = 1;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SIGNAL_LINE_H_
