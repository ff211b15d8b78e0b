#ifndef TANDEM_ENGINE_TRAINING_AVERAGING_POLICY_H_
#define TANDEM_ENGINE_TRAINING_AVERAGING_POLICY_H_

#include <cstdint>
#include <vector>

#include "engine/data/sampler.h"
#include "engine/training/step_schedule.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// What all replicas have alike at some time.
struct Alike {
  bool parameters = true;
  bool optimizer_state = true;
  bool statistics = false;
};

// When the replicas of a job are averaged and what each counts for: with parameter_averaging after every so
// many steps of an epoch, after its last step and after the last of all; with all_reduce never, since they
// are always alike. All of it follows from the steps' numbers, which count from 0 over all epochs.
// Thread-safe.
class AveragingPolicy {
 public:
  // `replicas` has its defaults. `loads` are those by which `sampler`, which outlives it, deals.
  AveragingPolicy(const v1::Replicas& replicas, const TrainingLength& length, const Sampler* sampler,
                  std::vector<double> loads);

  // Whether each replica takes steps of its own.
  bool steps_alone() const { return every_ > 0; }
  // Whether replicas are averaged after this step.
  bool AveragesAfter(int64_t step) const;
  // Whether the averaging after this step is to be reported.
  bool ReportsAfter(int64_t step) const { return reports_ && AveragesAfter(step); }
  // How many averagings there are until `steps` steps were taken.
  int64_t Averagings(int64_t steps) const;
  // What all replicas have alike after `steps` steps.
  Alike AlikeAfter(int64_t steps) const;
  // Whether the optimizer's state is averaged too.
  bool averages_state() const { return averages_state_; }

  // What each replica counts for in an averaging after this step, in the order of ranks; they add up to 1.
  // A replica that took no step since the averaging before counts for nothing.
  std::vector<double> SharesAfter(int64_t step) const;
  // What each counts for where a mean is taken of all of them.
  std::vector<double> Shares() const;

 private:
  // Steps of an epoch; the last one of all may have fewer.
  int64_t StepsOfEpoch(int64_t epoch_begin) const;

  const int64_t every_;  // 0 where replicas are never averaged.
  const bool averages_state_;
  const bool reports_;
  const TrainingLength length_;
  const Sampler* const sampler_;
  const std::vector<double> weights_;  // By rank.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_AVERAGING_POLICY_H_
