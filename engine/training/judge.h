#ifndef TANDEM_ENGINE_TRAINING_JUDGE_H_
#define TANDEM_ENGINE_TRAINING_JUDGE_H_

#include <cstdint>
#include <optional>

#include "engine/schedules/learning_rate.h"
#include "engine/training/early_stopping.h"
#include "engine/training/training_state.h"
#include "engine/training/watched_measure.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Returns the measures by which `training`, with its defaults, judges results.
Aims AimsOf(const v1::Training& training);

// Resets early stopping, and the plateau's best result, if `training` judges them by other measures than
// `state` does. The plateau's rate stays.
void ForgetOtherAims(const v1::Training& training, TrainingState* state);

// Decides from the measurements of a whole network: the best result, the end of training, and the plateau's
// rate. Thread-compatible.
class Judge {
 public:
  // `training` has its defaults. `learning_rate` must outlive this object.
  Judge(const v1::Training& training, LearningRate* learning_rate);

  // Takes a deciding measurement after `steps` steps, in epoch `epoch`. This is a validation or, without
  // validation, an epoch's training. A missing measure or NaN decides nothing.
  void Measure(const v1::Evaluation& evaluation, bool validation, int64_t epoch, int64_t steps);
  // Takes the validation of the finished network, if it is not the validation that ended training. This
  // validation may become the best result, and changes nothing else.
  void MeasureFinished(const v1::Evaluation& evaluation, int64_t epoch, int64_t steps) {
    Compare(evaluation, /*validation=*/true, epoch, steps);
  }
  // Ends an epoch. Call it after the epoch's measurements.
  void EndEpoch(int64_t steps);

  // Returns the best result so far, or null before the first number.
  const v1::BestResult* best() const { return best_.has_value() ? &*best_ : nullptr; }
  // Returns whether the newest measurement is the best.
  bool improved() const { return improved_; }
  void ForgetImprovement() { improved_ = false; }
  // Returns why training ends early, or the reason UNSPECIFIED.
  const TrainingOutcome& end() const { return end_; }

  // Copies the judge's parts to and from a state.
  void Save(TrainingState* state) const;
  void Restore(const TrainingState& state);

 private:
  // Compares an evaluation with the best result so far.
  void Compare(const v1::Evaluation& evaluation, bool validation, int64_t epoch, int64_t steps);

  const Aims aims_;
  const WatchedMeasure best_measure_;
  const WatchedMeasure plateau_measure_;
  LearningRate* const learning_rate_;
  EarlyStopping early_stopping_;
  std::optional<v1::BestResult> best_;
  bool improved_ = false;
  TrainingOutcome end_;
  // The newest measurement that the plateau has not seen.
  std::optional<double> for_plateau_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_JUDGE_H_
