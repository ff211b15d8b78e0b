#include "engine/training/judge.h"

#include <cmath>

#include "engine/metrics/metric.h"

namespace tandem {
namespace {

WatchedMeasure OfPlateau(const v1::Training& training) {
  const v1::PlateauSchedule& spec = training.schedule().plateau();
  return MakeMeasure(
      spec.metric() == v1::METRIC_UNSPECIFIED ? kLossMeasure : MetricName(spec.metric(), training),
      spec.mode());
}

}  // namespace

Judge::Judge(const v1::Training& training, LearningRate* learning_rate)
    : best_measure_(MakeMeasure(training.best_model().metric(), training.best_model().mode())),
      plateau_measure_(OfPlateau(training)),
      learning_rate_(learning_rate),
      early_stopping_(training.early_stopping()) {}

void Judge::Compare(const v1::Evaluation& evaluation, bool validation, int64_t epoch, int64_t steps) {
  const double value = best_measure_.Of(evaluation);
  // What is no number is no result.
  improved_ = !std::isnan(value) && (!best_.has_value() || best_measure_.IsBetter(value, best_->value()));
  if (improved_) {
    best_.emplace();
    best_->set_epoch(epoch);
    best_->set_step(steps);
    best_->set_metric(best_measure_.name);
    best_->set_value(value);
    best_->set_validation(validation);
  }
}

void Judge::Measure(const v1::Evaluation& evaluation, bool validation, int64_t epoch, int64_t steps) {
  Compare(evaluation, validation, epoch, steps);
  const double for_plateau = plateau_measure_.Of(evaluation);
  if (learning_rate_->watches() && !std::isnan(for_plateau)) for_plateau_ = for_plateau;
  if (early_stopping_.Measures(evaluation)) end_ = early_stopping_.Observe(evaluation, steps);
}

void Judge::EndEpoch(int64_t steps) {
  if (!for_plateau_.has_value()) return;
  learning_rate_->EndEpoch(steps, *for_plateau_);
  for_plateau_.reset();
}

void Judge::Save(TrainingState* state) const {
  if (best_.has_value()) *state->summary.mutable_best() = *best_;
  state->early_stopping = early_stopping_.state();
  state->plateau_measure = for_plateau_;
  state->plateau = learning_rate_->state();
  state->end = end_;
}

void Judge::Restore(const TrainingState& state) {
  if (state.summary.has_best()) best_ = state.summary.best();
  early_stopping_.Restore(state.early_stopping);
  for_plateau_ = state.plateau_measure;
  if (state.plateau.has_value()) learning_rate_->Restore(*state.plateau);
  end_ = state.end;
}

}  // namespace tandem
