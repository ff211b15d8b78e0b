#ifndef TANDEM_ENGINE_TRAINING_AVERAGING_POLICY_H_
#define TANDEM_ENGINE_TRAINING_AVERAGING_POLICY_H_

#include <cstdint>
#include <vector>

#include "engine/data/sampler.h"
#include "engine/training/training_length.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The parts of their state that all replicas share at some step.
struct Alike {
  bool parameters = true;
  bool optimizer_state = true;
  bool statistics = false;
};

// Decides when the replicas of a job are averaged, and with which weights. With parameter_averaging, replicas
// are averaged every few steps of an epoch, after the epoch's last step and after the last step of all. With
// all_reduce they are never averaged, because they are always equal. All answers depend on step numbers
// alone. Steps count from 0 over all epochs. Thread-safe.
class AveragingPolicy {
 public:
  // `replicas` has its defaults. `sampler` deals by `loads` and must outlive this object.
  AveragingPolicy(const v1::Replicas& replicas, const TrainingLength& length, const Sampler* sampler,
                  std::vector<double> loads);

  // Returns whether each replica takes its own steps.
  bool steps_alone() const { return every_ > 0; }
  // Returns whether replicas are averaged after this step.
  bool AveragesAfter(int64_t step) const;
  // Returns whether to report the averaging after this step.
  bool ReportsAfter(int64_t step) const { return reports_ && AveragesAfter(step); }
  // Returns the number of averagings during the first `steps` steps.
  int64_t Averagings(int64_t steps) const;
  // Returns the state that all replicas share after `steps` steps.
  Alike AlikeAfter(int64_t steps) const;
  // Returns whether the optimizer's state is also averaged.
  bool averages_state() const { return averages_state_; }

  // Returns each replica's weight in the averaging after this step, in the order of ranks. The weights add up
  // to 1. A replica without a step since the last averaging has weight 0.
  std::vector<double> SharesAfter(int64_t step) const;
  // Returns each replica's weight in a mean of all replicas.
  std::vector<double> Shares() const;

 private:
  // Returns the number of steps of the epoch. The last epoch may have fewer.
  int64_t StepsOfEpoch(int64_t epoch_begin) const;

  const int64_t every_;  // 0 if replicas are never averaged.
  const bool averages_state_;
  const bool reports_;
  const TrainingLength length_;
  const Sampler* const sampler_;
  const std::vector<double> weights_;  // By rank.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_AVERAGING_POLICY_H_
