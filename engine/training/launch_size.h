#ifndef TANDEM_ENGINE_TRAINING_LAUNCH_SIZE_H_
#define TANDEM_ENGINE_TRAINING_LAUNCH_SIZE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "engine/base/clock.h"

namespace tandem {

// The number of steps that a device receives at a time. The job gives it. Otherwise it is measured: a power
// of two whose steps take about 20 milliseconds. Used by rank 0's thread alone.
class LaunchSize {
 public:
  // `given` is in [1, kMostStepsPerLaunch], or 0 to measure. `clock` must outlive this object.
  LaunchSize(int64_t given, const Clock* clock)
      : size_(given > 0 ? given : 1), measures_(given == 0), clock_(clock) {}

  int64_t size() const { return size_; }

  // Reports that the device received `steps` steps. The device may lag behind. `disturbed` says that the
  // thread did other work since the last call.
  void Took(int64_t steps, bool disturbed);

 private:
  // After a disturbance, the first steps fill the device's queue and are not measured.
  static constexpr int64_t kWarmUpSteps = 8;
  static constexpr int64_t kMeasuredSteps = 16;
  static constexpr absl::Duration kLaunch = absl::Milliseconds(20);

  int64_t size_;
  bool measures_;
  const Clock* const clock_;
  int64_t warm_up_left_ = kWarmUpSteps;
  int64_t measured_steps_ = 0;
  absl::Duration measured_;
  absl::Duration last_;  // The time of the last launch.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_LAUNCH_SIZE_H_
