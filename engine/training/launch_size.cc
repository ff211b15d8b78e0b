#include "engine/training/launch_size.h"

#include "engine/training/plan.h"

namespace tandem {

void LaunchSize::Took(int64_t steps, bool disturbed) {
  if (!measures_) return;
  if (disturbed) steps_ = 0;
  steps_ += steps;
  if (steps_ == kWarmUpSteps) begin_ = clock_->Elapsed();
  if (steps_ < kWarmUpSteps + kMeasuredSteps) return;
  const absl::Duration step = (clock_->Elapsed() - begin_) / kMeasuredSteps;
  while (size_ < kMostStepsPerLaunch && 2 * size_ * step <= kLaunch) size_ *= 2;
  measures_ = false;
}

}  // namespace tandem
