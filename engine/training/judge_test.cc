#include "engine/training/judge.h"

#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/training/plan.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns the best of these losses. Each epoch has a single step.
v1::BestResult BestOf(const v1::Training& training, const std::vector<double>& losses) {
  LearningRate learning_rate({.schedule = training.schedule(), .learning_rate = 0.1});
  Judge judge(training, &learning_rate);
  for (size_t i = 0; i < losses.size(); ++i) {
    v1::Evaluation evaluation;
    evaluation.set_loss(losses[i]);
    const auto epoch = static_cast<int64_t>(i + 1);
    judge.Measure(evaluation, /*validation=*/true, epoch, epoch);
  }
  TrainingState state;
  judge.Save(&state);
  return state.summary.best();
}

// A fork may ask for the least loss after its parent asked for the best accuracy.
TEST(JudgeTest, TheBestFollowsAMetricThatIsChangedLater) {
  v1::JobSpec spec =
      FromText<v1::JobSpec>(R"(training { best_model { metric: "accuracy" } metrics: METRIC_ACCURACY })");
  FillDefaults(&spec);
  spec.mutable_training()->mutable_best_model()->set_metric("loss");
  FillDefaults(&spec);
  const v1::BestResult best = BestOf(spec.training(), {1.5, 1.25, 2});
  EXPECT_EQ(best.epoch(), 2);
  EXPECT_EQ(best.value(), 1.25);
}

TEST(JudgeTest, WhatLooksForSomethingElseBeginsAnew) {
  v1::JobSpec spec = FromText<v1::JobSpec>(R"(training {
    metrics: METRIC_ACCURACY
    early_stopping { metric: "accuracy" patience: 2 }
    schedule { plateau { metric: METRIC_ACCURACY patience: 0 factor: 0.5 } }
  })");
  FillDefaults(&spec);
  LearningRate learning_rate({.schedule = spec.training().schedule(), .learning_rate = 1});
  Judge judge(spec.training(), &learning_rate);
  v1::Evaluation evaluation;
  for (const double accuracy : {0.75, 0.5}) {
    (*evaluation.mutable_metrics())["accuracy"] = accuracy;
    evaluation.set_loss(3);
    judge.Measure(evaluation, /*validation=*/true, 1, 1);
    judge.EndEpoch(1);
  }
  TrainingState state;
  judge.Save(&state);
  EXPECT_EQ(state.aims.early_stopping, "the largest accuracy");
  EXPECT_EQ(state.aims.best, "the largest accuracy");
  TrainingState same = state;
  ForgetOtherAims(spec.training(), &same);
  EXPECT_EQ(same.early_stopping.best, 0.75);
  EXPECT_EQ(same.early_stopping.without_improvement, 1);
  ASSERT_TRUE(same.plateau.has_value());
  EXPECT_EQ(same.plateau->best, 0.75);

  // A fork looks for the least loss. 3 and 2 are worse numbers than 0.75, but not worse losses.
  spec.mutable_training()->mutable_early_stopping()->set_metric("loss");
  spec.mutable_training()->mutable_schedule()->mutable_plateau()->clear_metric();
  FillDefaults(&spec);
  ForgetOtherAims(spec.training(), &state);
  LearningRate next_rate({.schedule = spec.training().schedule(), .learning_rate = 1});
  Judge next(spec.training(), &next_rate);
  next.Restore(state);
  for (const double loss : {3, 2}) {
    evaluation.set_loss(loss);
    next.Measure(evaluation, /*validation=*/true, 2, 2);
    next.EndEpoch(2);
    EXPECT_EQ(next.end().reason, v1::STATE_REASON_UNSPECIFIED);
  }
  EXPECT_EQ(next_rate.Rate(2), 0.5);  // As the second accuracy left it.

  // Another loss has other numbers.
  next.Save(&state);
  EXPECT_EQ(state.early_stopping.best, 2);
  spec.mutable_training()->mutable_loss()->mutable_softmax_cross_entropy()->set_label_smoothing(0.25);
  const Aims aims = AimsOf(spec.training());
  EXPECT_EQ(aims.early_stopping, "the least loss of softmax_cross_entropy { label_smoothing: 0.25 }");
  EXPECT_EQ(aims.best, aims.early_stopping) << "the best result follows early stopping";
  ForgetOtherAims(spec.training(), &state);
  EXPECT_FALSE(state.early_stopping.best.has_value());
}

}  // namespace
}  // namespace tandem
