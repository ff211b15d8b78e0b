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

// What a training that has its defaults looks for.
Aims AimsOf(const v1::Training& training);

// Forgets what early stopping and the plateau remember, if they looked for something else than `training`
// does. The plateau's rate stays.
void ForgetOtherAims(const v1::Training& training, TrainingState* state);

// What follows from the measurements of a whole network: the best result, the end of training, the rate of a
// plateau. Thread-compatible.
class Judge {
 public:
  // `training` has its defaults; `learning_rate` outlives it.
  Judge(const v1::Training& training, LearningRate* learning_rate);

  // A measurement that counts, after `steps` steps, in epoch `epoch`: a validation, or, where there is none,
  // the training of an epoch. A measure that is missing, or is not a number, decides nothing.
  void Measure(const v1::Evaluation& evaluation, bool validation, int64_t epoch, int64_t steps);
  // The validation of the finished network, where it is not the one that ended its training: it may be the
  // best, and decides nothing else.
  void MeasureFinished(const v1::Evaluation& evaluation, int64_t epoch, int64_t steps) {
    Compare(evaluation, /*validation=*/true, epoch, steps);
  }
  // An epoch has ended, after its measurements.
  void EndEpoch(int64_t steps);

  // The best so far; null before the first measurement that is a number.
  const v1::BestResult* best() const { return best_.has_value() ? &*best_ : nullptr; }
  // Whether the newest measurement is the best.
  bool improved() const { return improved_; }
  void ForgetImprovement() { improved_ = false; }
  // How training ends early; reason UNSPECIFIED while it goes on.
  const TrainingOutcome& end() const { return end_; }

  // To and from the parts of a state that are the judge's.
  void Save(TrainingState* state) const;
  void Restore(const TrainingState& state);

 private:
  // With the best so far.
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
