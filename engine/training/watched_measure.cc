#include "engine/training/watched_measure.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/measure_direction.h"
#include "engine/metrics/metric.h"

namespace tandem {

double WatchedMeasure::Of(const v1::Evaluation& evaluation) const {
  if (name == kLossMeasure) return evaluation.loss();
  const auto found = evaluation.metrics().find(name);
  return found == evaluation.metrics().end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

std::string WatchedMeasure::ToString() const {
  return absl::StrCat("the ", downwards ? "least " : "largest ", name);
}

std::vector<std::string> MeasureNames(const v1::Training& training) {
  std::vector<std::string> names = {kLossMeasure};
  for (const int metric : training.metrics()) {
    // A confusion matrix is no number.
    if (metric == v1::METRIC_CONFUSION_MATRIX) continue;
    names.push_back(MetricName(static_cast<v1::Metric>(metric), training));
  }
  return names;
}

WatchedMeasure MakeMeasure(const std::string& metric, v1::PlateauMode mode) {
  const bool is_given = mode != v1::PLATEAU_MODE_UNSPECIFIED;
  return {.name = metric, .downwards = is_given ? mode == v1::PLATEAU_MODE_MIN : IsBetterIfSmaller(metric)};
}

WatchedMeasure BestMeasure(const v1::Training& training) {
  const v1::BestModel& best = training.best_model();
  if (!best.metric().empty()) return MakeMeasure(best.metric(), best.mode());
  const v1::EarlyStopping& stopping = training.early_stopping();
  return MakeMeasure(stopping.metric().empty() ? kLossMeasure : stopping.metric(),
                     best.mode() == v1::PLATEAU_MODE_UNSPECIFIED ? stopping.mode() : best.mode());
}

void CheckMeasure(const v1::Training& training, absl::string_view field, const std::string& metric,
                  v1::PlateauMode mode, FieldViolations& violations) {
  const std::vector<std::string> names = MeasureNames(training);
  if (std::find(names.begin(), names.end(), metric) == names.end()) {
    violations.Add(absl::StrCat(field, ".metric"),
                   absl::StrCat("is \"", metric, "\", which is not measured; this job measures ",
                                absl::StrJoin(names, ", "), " (training.metrics adds to it)"));
  }
  if (!v1::PlateauMode_IsValid(mode)) {
    violations.Add(absl::StrCat(field, ".mode"),
                   absl::StrCat("is ", static_cast<int>(mode), ", which is no mode"));
  }
}

}  // namespace tandem
