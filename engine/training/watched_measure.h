#ifndef TANDEM_ENGINE_TRAINING_WATCHED_MEASURE_H_
#define TANDEM_ENGINE_TRAINING_WATCHED_MEASURE_H_

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// The name of the loss as a measure.
inline constexpr char kLossMeasure[] = "loss";

// A number of an evaluation, and its better direction.
struct WatchedMeasure {
  std::string name;
  bool downwards = true;

  // Returns the aim for people: "the least loss".
  std::string ToString() const;
  // Returns the number, or NaN if the evaluation does not have it.
  double Of(const v1::Evaluation& evaluation) const;
  // Returns whether `value` is better than `other` by more than `margin`. Any number is better than NaN.
  bool IsBetter(double value, double other, double margin = 0) const {
    if (std::isnan(other)) return !std::isnan(value);
    return downwards ? value < other - margin : value > other + margin;
  }
};

// Returns the names of all measures of this training: "loss", then the metrics.
std::vector<std::string> MeasureNames(const v1::Training& training);

// Returns the measure with this name. Its better direction is `mode` if given, else the measure's own
// direction (IsBetterIfSmaller). A missing mode stays missing in a spec, so that it follows a metric that a
// fork or an override changes.
WatchedMeasure MakeMeasure(const std::string& metric, v1::PlateauMode mode);

// Returns the measure of the best result: best_model's metric, else early_stopping's metric, else the loss.
WatchedMeasure BestMeasure(const v1::Training& training);

// Adds a violation under `field` if the measure or the mode does not exist.
void CheckMeasure(const v1::Training& training, absl::string_view field, const std::string& metric,
                  v1::PlateauMode mode, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_WATCHED_MEASURE_H_
