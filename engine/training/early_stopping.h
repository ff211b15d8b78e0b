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

// How a training ended that did not fail.
struct TrainingOutcome {
  // COMPLETED, NO_IMPROVEMENT, TARGET_REACHED, TIME_LIMIT or PAUSE_REQUESTED; UNSPECIFIED while it goes on.
  v1::StateReason reason = v1::STATE_REASON_UNSPECIFIED;
  // A sentence for people.
  std::string message;
};

// Says when a measure is good enough, or no longer gets better. Thread-compatible.
class EarlyStopping {
 public:
  // What it remembers from measurement to measurement.
  struct State {
    std::optional<double> best;
    int64_t best_step = 0;
    int64_t without_improvement = 0;  // Measurements in a row.
  };

  // `spec` has its defaults; without patience and target it never stops.
  explicit EarlyStopping(const v1::EarlyStopping& spec);

  // Whether an evaluation has the measure that is watched.
  bool Measures(const v1::Evaluation& evaluation) const { return !std::isnan(measure_.Of(evaluation)); }
  // A measurement after `step` steps. Says whether training ends with it: reason UNSPECIFIED where it does
  // not.
  TrainingOutcome Observe(const v1::Evaluation& evaluation, int64_t step);

  const State& state() const { return state_; }
  void Restore(const State& state) { state_ = state; }

 private:
  const v1::EarlyStopping spec_;
  const WatchedMeasure measure_;
  State state_;
};

// Sets the fields that have a default and are left out, but for the mode, which follows from the metric.
void FillEarlyStoppingDefaults(v1::EarlyStopping* spec);

// Adds what is wrong, under "training.early_stopping".
void CheckEarlyStopping(const v1::Training& training, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_EARLY_STOPPING_H_
