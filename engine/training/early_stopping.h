#ifndef TANDEM_ENGINE_TRAINING_EARLY_STOPPING_H_
#define TANDEM_ENGINE_TRAINING_EARLY_STOPPING_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/training/watched_measure.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// The end of a training that did not fail.
struct TrainingOutcome {
  // COMPLETED, NO_IMPROVEMENT, TARGET_REACHED, TIME_LIMIT or PAUSE_REQUESTED. UNSPECIFIED while training
  // continues.
  v1::StateReason reason = v1::STATE_REASON_UNSPECIFIED;
  // A sentence for people.
  std::string message;
};

// Decides when a measure has reached its target or no longer improves. Thread-compatible.
class EarlyStopping {
 public:
  // The state between two measurements.
  struct State {
    std::optional<double> best;
    int64_t best_step = 0;
    int64_t without_improvement = 0;  // Measurements in a row.
  };

  // `spec` has its defaults. Without patience and target it never stops.
  explicit EarlyStopping(const v1::EarlyStopping& spec);

  // Returns whether an evaluation has the watched measure.
  bool Measures(const v1::Evaluation& evaluation) const { return !std::isnan(measure_.Of(evaluation)); }
  // Takes a measurement after `step` steps. Returns why training ends now, or the reason UNSPECIFIED.
  TrainingOutcome Observe(const v1::Evaluation& evaluation, int64_t step);

  const State& state() const { return state_; }
  void Restore(const State& state) { state_ = state; }

 private:
  const v1::EarlyStopping spec_;
  const WatchedMeasure measure_;
  State state_;
};

// Sets missing fields to their defaults, except the mode, which follows from the metric.
void FillEarlyStoppingDefaults(v1::EarlyStopping* spec);

// Adds the mistakes, under "training.early_stopping".
void CheckEarlyStopping(const v1::Training& training, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_EARLY_STOPPING_H_
