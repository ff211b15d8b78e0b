#include "engine/training/early_stopping.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tandem {

EarlyStopping::EarlyStopping(const v1::EarlyStopping& spec)
    : spec_(spec), measure_(MakeMeasure(spec.metric(), spec.mode())) {}

TrainingOutcome EarlyStopping::Observe(const v1::Evaluation& evaluation, int64_t step) {
  if (!spec_.has_patience() && !spec_.has_target()) return {};
  const double value = measure_.Of(evaluation);
  if (spec_.has_target() && !measure_.IsBetter(spec_.target(), value) && !std::isnan(value)) {
    return {v1::STATE_REASON_TARGET_REACHED,
            absl::StrCat("The ", measure_.name, " is ", value, " after step ", step,
                         ": as good as the target, ", spec_.target(), ", or better.")};
  }
  if (!state_.best.has_value() || measure_.IsBetter(value, *state_.best, spec_.min_delta())) {
    state_ = {.best = value, .best_step = step, .without_improvement = 0};
    return {};
  }
  ++state_.without_improvement;
  if (!spec_.has_patience() || state_.without_improvement < spec_.patience()) return {};
  return {v1::STATE_REASON_NO_IMPROVEMENT,
          absl::StrCat("The ", measure_.name, " has not improved in the last ", state_.without_improvement,
                       state_.without_improvement == 1 ? " measurement" : " measurements",
                       spec_.min_delta() > 0 ? absl::StrCat(" by more than ", spec_.min_delta()) : "",
                       ": it is ", value, " after step ", step, ", and was ", *state_.best, " after step ",
                       state_.best_step, ".")};
}

void FillEarlyStoppingDefaults(v1::EarlyStopping* spec) {
  if (spec->metric().empty()) spec->set_metric(kLossMeasure);
}

void CheckEarlyStopping(const v1::Training& training, FieldViolations& violations) {
  if (!training.has_early_stopping()) return;
  const v1::EarlyStopping& spec = training.early_stopping();
  constexpr char kField[] = "training.early_stopping";
  CheckMeasure(training, kField, spec.metric(), spec.mode(), violations);
  const auto check = [&](absl::string_view field, bool good, double value, absl::string_view wanted) {
    if (!good) {
      violations.Add(absl::StrCat(kField, ".", field), absl::StrCat("is ", value, "; it must be ", wanted));
    }
  };
  check("patience",
        !spec.has_patience() ||
            (spec.patience() >= 1 && spec.patience() <= std::numeric_limits<int32_t>::max()),
        static_cast<double>(spec.patience()), "at least 1, and less than 2^31");
  check("min_delta", spec.min_delta() >= 0 && std::isfinite(spec.min_delta()), spec.min_delta(),
        "at least 0");
  check("target", std::isfinite(spec.target()), spec.target(), "a finite number");
  check("max_seconds",
        !spec.has_max_seconds() || (spec.max_seconds() > 0 && std::isfinite(spec.max_seconds())),
        spec.max_seconds(), "above 0");
  if (!spec.has_patience() && !spec.has_target() && !spec.has_max_seconds()) {
    violations.Add(kField, "says nothing; give patience, target or max_seconds, or leave it out");
  }
}

}  // namespace tandem
