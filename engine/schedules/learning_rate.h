#ifndef TANDEM_ENGINE_SCHEDULES_LEARNING_RATE_H_
#define TANDEM_ENGINE_SCHEDULES_LEARNING_RATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/schedules/plateau.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// An earlier part of a training, whose epochs had another number of steps. After step `step` of this part,
// (step + epoch_shift) / steps_per_epoch epochs were whole.
struct EarlierEpochs {
  int64_t end = 0;  // The step after the part's last step, counted from 0 over the whole training.
  int64_t steps_per_epoch = 1;
  int64_t epoch_shift = 0;
};

// The learning rate of a training, step by step, in double precision. Any thread may call Rate, but not
// during EndEpoch.
class LearningRate {
 public:
  struct Options {
    v1::Schedule schedule;     // With its defaults, and checked.
    double learning_rate = 0;  // Of the optimizer.
    int64_t steps_per_epoch = 1;
    int64_t steps = 1;  // Of the whole training.
    // Added to a step's number before it is converted to an epoch. See TrainingLength.
    int64_t epoch_shift = 0;
    std::vector<EarlierEpochs> earlier_epochs = {};  // In the order of steps.
    int replicas = 1;
  };
  explicit LearningRate(const Options& options);
  ~LearningRate();

  // Returns the rate of step `step`, from 0 over all epochs.
  double Rate(int64_t step) const;

  // Returns whether rates depend on measurements. Then call EndEpoch between an epoch's last step and the
  // next step.
  bool watches() const { return plateau_ != nullptr; }
  // Ends an epoch, `steps` steps after training began. `measure` is the measure that the schedule watches.
  // `smaller_is_better` is the same for all epochs.
  void EndEpoch(int64_t steps, double measure, bool smaller_is_better);

  // Returns the state of the measurements, or nothing if none is watched.
  std::optional<Plateau::State> state() const;
  // Restores a state of the same schedule. Never call it during Rate.
  void Restore(const Plateau::State& state);

 private:
  // Returns the step number by which the schedule counts.
  int64_t ScheduleStep(int64_t step) const { return step + (counts_epochs_ ? epoch_shift_ : 0); }
  // `t` counts steps from the end of the warm-up.
  double RateAfterWarmup(int64_t t) const;

  int64_t steps_per_epoch_;
  int64_t epoch_shift_;
  bool counts_epochs_;
  // The rate at t, in the schedule's unit. Not used by a plateau.
  std::function<double(int64_t t)> curve_;
  std::unique_ptr<Plateau> plateau_;

  int64_t warmup_end_ = 0;      // The first step after the warm-up.
  int64_t schedule_begin_ = 0;  // The ScheduleStep at which the schedule's t is 0.
  int64_t warmup_length_ = 0;
  bool warmup_counts_epochs_ = false;
  double start_factor_ = 1;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_LEARNING_RATE_H_
