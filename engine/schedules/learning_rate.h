#ifndef TANDEM_ENGINE_SCHEDULES_LEARNING_RATE_H_
#define TANDEM_ENGINE_SCHEDULES_LEARNING_RATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "engine/schedules/plateau.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// The learning rate of a training, step by step, in double precision. Rate may be called from any thread, but
// not while EndEpoch runs.
class LearningRate {
 public:
  struct Options {
    v1::Schedule schedule;     // With its defaults, and checked.
    double learning_rate = 0;  // The optimizer's.
    int64_t steps_per_epoch = 1;
    int64_t steps = 1;  // Of the whole training.
    // What is added to a step's number where its epoch is asked for; see TrainingLength.
    int64_t epoch_shift = 0;
    int replicas = 1;
  };
  explicit LearningRate(const Options& options);
  ~LearningRate();

  // The rate in use during step `step`, from 0 over all epochs.
  double Rate(int64_t step) const;

  // Whether rates depend on what was measured: then EndEpoch comes between an epoch's last step and the
  // next one's first.
  bool watches() const { return plateau_ != nullptr; }
  // An epoch of training has ended, `steps` steps after training began; `measure` is what the schedule
  // watches.
  void EndEpoch(int64_t steps, double measure);

  // What was learned from measurements; none where none is watched.
  std::optional<Plateau::State> state() const;
  // For the schedule that gave the state. Not while Rate runs.
  void Restore(const Plateau::State& state);

 private:
  // The step by whose number the warm-up, or the schedule, goes.
  int64_t WarmupStep(int64_t step) const { return step + (warmup_counts_epochs_ ? epoch_shift_ : 0); }
  int64_t ScheduleStep(int64_t step) const { return step + (counts_epochs_ ? epoch_shift_ : 0); }
  // `t` counts steps from the end of the warm-up.
  double RateAfterWarmup(int64_t t) const;

  int64_t steps_per_epoch_;
  int64_t epoch_shift_;
  bool counts_epochs_;
  // The rate at t, in what the schedule counts in; not of a plateau.
  std::function<double(int64_t t)> curve_;
  std::unique_ptr<Plateau> plateau_;

  int64_t warmup_steps_ = 0;
  int64_t warmup_length_ = 0;
  bool warmup_counts_epochs_ = false;
  double start_factor_ = 1;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_SCHEDULES_LEARNING_RATE_H_
