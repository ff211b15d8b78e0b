#include "engine/training/judge.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

WatchedMeasure OfStopping(const v1::Training& training) {
  return MakeMeasure(training.early_stopping().metric(), training.early_stopping().mode());
}

WatchedMeasure OfPlateau(const v1::Training& training) {
  const v1::PlateauSchedule& spec = training.schedule().plateau();
  return MakeMeasure(
      spec.metric() == v1::METRIC_UNSPECIFIED ? kLossMeasure : MetricName(spec.metric(), training),
      spec.mode());
}

// Returns the aim of a measure. Losses of two kinds cannot be compared, so the kind is a part of it.
std::string AimOf(const WatchedMeasure& measure, const v1::Training& training) {
  if (measure.name != kLossMeasure) return measure.ToString();
  return absl::StrCat(measure.ToString(), " of ", training.loss().ShortDebugString());
}

}  // namespace

Aims AimsOf(const v1::Training& training) {
  Aims aims{.best = AimOf(BestMeasure(training), training)};
  if (training.has_early_stopping()) aims.early_stopping = AimOf(OfStopping(training), training);
  if (training.schedule().has_plateau()) aims.plateau = AimOf(OfPlateau(training), training);
  return aims;
}

void ForgetOtherAims(const v1::Training& training, TrainingState* state) {
  const Aims aims = AimsOf(training);
  if (state->aims.early_stopping != aims.early_stopping) state->early_stopping = {};
  if (state->aims.plateau == aims.plateau) return;
  state->plateau_measure.reset();
  if (!state->plateau.has_value()) return;
  state->plateau->best.reset();
  state->plateau->bad_epochs = 0;
}

Judge::Judge(const v1::Training& training, LearningRate* learning_rate)
    : aims_(AimsOf(training)),
      best_measure_(BestMeasure(training)),
      plateau_measure_(OfPlateau(training)),
      learning_rate_(learning_rate),
      early_stopping_(training.early_stopping()) {}

void Judge::Compare(const v1::Evaluation& evaluation, bool validation, int64_t epoch, int64_t steps) {
  const double value = best_measure_.Of(evaluation);
  // NaN is no result.
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
  learning_rate_->EndEpoch(steps, *for_plateau_, plateau_measure_.downwards);
  for_plateau_.reset();
}

void Judge::Save(TrainingState* state) const {
  if (best_.has_value()) *state->summary.mutable_best() = *best_;
  state->early_stopping = early_stopping_.state();
  state->plateau_measure = for_plateau_;
  state->plateau = learning_rate_->state();
  state->end = end_;
  state->aims = aims_;
}

void Judge::Restore(const TrainingState& state) {
  if (state.summary.has_best()) best_ = state.summary.best();
  early_stopping_.Restore(state.early_stopping);
  for_plateau_ = state.plateau_measure;
  if (state.plateau.has_value()) learning_rate_->Restore(*state.plateau);
  end_ = state.end;
}

}  // namespace tandem
