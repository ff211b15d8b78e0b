#include "engine/training/averaging_policy.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tandem {
namespace {

std::vector<double> Normalized(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

AveragingPolicy::AveragingPolicy(const v1::Replicas& replicas, const TrainingLength& length,
                                 const Sampler* sampler, std::vector<double> loads)
    : every_(replicas.parameter_averaging().every_iterations()),
      averages_state_(!replicas.has_parameter_averaging() ||
                      replicas.parameter_averaging().average_optimizer_state()),
      reports_(replicas.parameter_averaging().report_score_after_averaging()),
      length_(length),
      sampler_(sampler),
      weights_(replicas.parameter_averaging().weighted_by_load() ? std::move(loads)
                                                                 : std::vector<double>(loads.size(), 1.0)) {}

int64_t AveragingPolicy::StepsOfEpoch(int64_t epoch_begin) const {
  return std::min(length_.steps_per_epoch, length_.steps - epoch_begin);
}

bool AveragingPolicy::AveragesAfter(int64_t step) const {
  if (!steps_alone()) return false;
  const int64_t step_of_epoch = length_.StepOfEpoch(step);
  return (step_of_epoch + 1) % every_ == 0 || step_of_epoch + 1 == StepsOfEpoch(step - step_of_epoch);
}

int64_t AveragingPolicy::Averagings(int64_t steps) const {
  if (!steps_alone()) return 0;
  const int64_t epochs = length_.WholeEpochs(steps);
  const int64_t rest = length_.StepOfEpoch(steps);
  const int64_t an_epoch = (length_.steps_per_epoch + every_ - 1) / every_;
  const bool ends_between = rest > 0 && rest % every_ != 0 && AveragesAfter(steps - 1);
  return epochs * an_epoch + rest / every_ + (ends_between ? 1 : 0);
}

Alike AveragingPolicy::AlikeAfter(int64_t steps) const {
  if (!steps_alone()) return {};
  const bool averaged = steps == 0 || AveragesAfter(steps - 1);
  return {.parameters = averaged, .optimizer_state = averaged && averages_state_, .statistics = averaged};
}

std::vector<double> AveragingPolicy::SharesAfter(int64_t step) const {
  const int64_t step_of_epoch = length_.StepOfEpoch(step);
  // Each replica has samples in every batch, except perhaps in an epoch's short last batch.
  if (step_of_epoch + 1 < length_.steps_per_epoch || step_of_epoch % every_ != 0) return Shares();
  std::vector<double> weights = weights_;
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    if (sampler_->ShareSamples(step_of_epoch, static_cast<int>(rank)) == 0) weights[rank] = 0;
  }
  return Normalized(std::move(weights));
}

std::vector<double> AveragingPolicy::Shares() const { return Normalized(weights_); }

}  // namespace tandem
