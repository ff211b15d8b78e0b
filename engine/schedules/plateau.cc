#include "engine/schedules/plateau.h"

#include <algorithm>
#include <cmath>

namespace tandem {

namespace {

// A missing mode stays missing in the spec, so that it follows a metric that a fork changes.
bool ImprovesDownwards(const v1::PlateauSchedule& spec) {
  if (spec.mode() != v1::PLATEAU_MODE_UNSPECIFIED) return spec.mode() == v1::PLATEAU_MODE_MIN;
  switch (spec.metric()) {
    case v1::METRIC_UNSPECIFIED:
    case v1::METRIC_MAE:
    case v1::METRIC_RMSE:
    case v1::METRIC_PERPLEXITY:
      return true;
    default:
      return false;
  }
}

}  // namespace

Plateau::Plateau(const v1::PlateauSchedule& spec, double rate)
    : spec_(spec), downwards_(ImprovesDownwards(spec)) {
  state_.rate = rate;
}

bool Plateau::Improves(double measure) const {
  if (!state_.best.has_value()) return !std::isnan(measure);
  const double margin = downwards_ ? -spec_.threshold() : spec_.threshold();
  // With a product, an infinite best can still be improved.
  const double bar =
      spec_.threshold_mode() == v1::THRESHOLD_MODE_ABS ? *state_.best + margin : *state_.best * (1 + margin);
  return downwards_ ? measure < bar : measure > bar;
}

void Plateau::Observe(double measure) {
  if (Improves(measure)) {
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
