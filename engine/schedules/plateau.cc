#include "engine/schedules/plateau.h"

#include <algorithm>

namespace tandem {

bool Plateau::Improves(double measure) const {
  if (!best_.has_value()) return true;
  const bool downwards = spec_.mode() != v1::PLATEAU_MODE_MAX;
  const double sign = downwards ? -1 : 1;
  const double margin =
      spec_.threshold_mode() == v1::THRESHOLD_MODE_ABS ? spec_.threshold() : spec_.threshold() * *best_;
  const double bar = *best_ + sign * margin;
  return downwards ? measure < bar : measure > bar;
}

void Plateau::Observe(double measure) {
  if (Improves(measure)) {
    best_ = measure;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= spec_.patience()) return;
  const double lower = std::max(rate_ * spec_.factor(), spec_.min_lr());
  if (rate_ - lower > spec_.eps()) rate_ = lower;
  cooldown_left_ = spec_.cooldown();
  bad_epochs_ = 0;
}

}  // namespace tandem
