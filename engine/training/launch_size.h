#ifndef TANDEM_ENGINE_TRAINING_LAUNCH_SIZE_H_
#define TANDEM_ENGINE_TRAINING_LAUNCH_SIZE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "engine/base/clock.h"

namespace tandem {

// How many steps a device is given at a time: as the job says or, where it does not, as many as take about
// two milliseconds, a power of two, once steps have told how long they take. Of one replica's thread.
class LaunchSize {
 public:
  // `given` is from 1 to kMostStepsPerLaunch, or 0 to measure; `clock` outlives it.
  LaunchSize(int64_t given, const Clock* clock)
      : size_(given > 0 ? given : 1), measures_(given == 0), clock_(clock) {}

  int64_t size() const { return size_; }

  // So many steps were given to the device, which may be some behind. `disturbed` where anything else was
  // done since the last call.
  void Took(int64_t steps, bool disturbed);

 private:
  // After a disturbance the first ones fill what is on its way to the device, and do not count.
  static constexpr int64_t kWarmUpSteps = 8;
  static constexpr int64_t kMeasuredSteps = 16;
  static constexpr absl::Duration kLaunch = absl::Milliseconds(2);

  int64_t size_;
  bool measures_;
  const Clock* const clock_;
  int64_t warm_up_left_ = kWarmUpSteps;
  int64_t measured_steps_ = 0;
  absl::Duration measured_;
  absl::Duration last_;  // When steps were given last.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_LAUNCH_SIZE_H_
