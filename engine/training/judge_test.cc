#include "engine/training/judge.h"

#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/training/plan.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// The best of these losses, each of an epoch of one step.
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

// As where a fork of a job that looked for the best accuracy asks for the least loss.
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

}  // namespace
}  // namespace tandem
