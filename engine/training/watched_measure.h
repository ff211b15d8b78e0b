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

// "loss".
inline constexpr char kLossMeasure[] = "loss";

// One number of an evaluation, and which way it is better.
struct WatchedMeasure {
  std::string name;
  bool downwards = true;

  // What is looked for: "the least loss".
  std::string ToString() const;
  // Not a number where the evaluation does not have it.
  double Of(const v1::Evaluation& evaluation) const;
  // Whether `value` is better than `other` by more than `margin`. Any number is better than what is none.
  bool IsBetter(double value, double other, double margin = 0) const {
    if (std::isnan(other)) return !std::isnan(value);
    return downwards ? value < other - margin : value > other + margin;
  }
};

// Names of all that an evaluation of this training has: "loss", then the metrics.
std::vector<std::string> MeasureNames(const v1::Training& training);

// Which way a measure improves, PLATEAU_MODE_MIN or PLATEAU_MODE_MAX: `mode` if given, else as the measure
// says. A spec keeps a mode that was left out as it is: a fork or an override may change the metric, and the
// mode follows.
v1::PlateauMode ModeOf(absl::string_view metric, v1::PlateauMode mode);

// The measure of this name.
WatchedMeasure MakeMeasure(const std::string& metric, v1::PlateauMode mode);

// The measure of the best result: best_model's, or early_stopping's if best_model has no metric, or the loss.
WatchedMeasure BestMeasure(const v1::Training& training);

// Says under `field` where there is no such measure, or no such mode.
void CheckMeasure(const v1::Training& training, absl::string_view field, const std::string& metric,
                  v1::PlateauMode mode, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_WATCHED_MEASURE_H_
