#include "engine/training/launch_size.h"

#include "engine/training/plan.h"

namespace tandem {

void LaunchSize::Took(int64_t steps, bool disturbed) {
  if (!measures_) return;
  const absl::Duration now = clock_->Elapsed();
  if (disturbed) warm_up_left_ = kWarmUpSteps;
  if (warm_up_left_ > 0) {
    warm_up_left_ -= steps;
  } else {
    measured_steps_ += steps;
    measured_ += now - last_;
  }
  last_ = now;
  if (measured_steps_ < kMeasuredSteps) return;
  const absl::Duration step = measured_ / measured_steps_;
  while (size_ < kMostStepsPerLaunch && 2 * size_ * step <= kLaunch) size_ *= 2;
  measures_ = false;
}

}  // namespace tandem
