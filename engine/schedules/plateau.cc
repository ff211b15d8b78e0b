#include "engine/schedules/plateau.h"

#include <algorithm>
#include <cmath>

namespace tandem {

Plateau::Plateau(const v1::PlateauSchedule& spec, double rate) : spec_(spec) { state_.rate = rate; }

bool Plateau::Improves(double measure, bool smaller_is_better) const {
  if (!state_.best.has_value()) return !std::isnan(measure);
  const double margin = smaller_is_better ? -spec_.threshold() : spec_.threshold();
  // With a product, an infinite best can still be improved.
  const double bar =
      spec_.threshold_mode() == v1::THRESHOLD_MODE_ABS ? *state_.best + margin : *state_.best * (1 + margin);
  return smaller_is_better ? measure < bar : measure > bar;
}

void Plateau::Observe(double measure, bool smaller_is_better) {
  if (Improves(measure, smaller_is_better)) {
    state_.best = measure;
    state_.bad_epochs = 0;
  } else {
    ++state_.bad_epochs;
  }
  if (state_.cooldown_left > 0) {
    --state_.cooldown_left;
    state_.bad_epochs = 0;
  }
  if (state_.bad_epochs <= spec_.patience()) return;
  const double lower = std::max(state_.rate * spec_.factor(), spec_.min_lr());
  if (state_.rate - lower > spec_.eps()) state_.rate = lower;
  state_.cooldown_left = spec_.cooldown();
  state_.bad_epochs = 0;
}

}  // namespace tandem
