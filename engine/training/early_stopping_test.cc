#include "engine/training/early_stopping.h"

#include <cmath>
#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

v1::Evaluation Measured(double loss, double accuracy = 0) {
  v1::Evaluation evaluation;
  evaluation.set_loss(loss);
  (*evaluation.mutable_metrics())["accuracy"] = accuracy;
  return evaluation;
}

EarlyStopping Make(v1::EarlyStopping spec) {
  FillEarlyStoppingDefaults(&spec);
  return EarlyStopping(spec);
}

// Returns the number of losses after which training ends, or 0 if it continues.
int StopsAfter(EarlyStopping stopping, const std::vector<double>& losses, v1::StateReason* reason) {
  for (size_t i = 0; i < losses.size(); ++i) {
    const TrainingOutcome outcome = stopping.Observe(Measured(losses[i]), static_cast<int64_t>(i + 1));
    *reason = outcome.reason;
    if (outcome.reason == v1::STATE_REASON_UNSPECIFIED) continue;
    EXPECT_FALSE(outcome.message.empty());
    return static_cast<int>(i + 1);
  }
  return 0;
}

TEST(EarlyStoppingTest, CountsMeasurementsWithoutImprovement) {
  v1::EarlyStopping spec;
  spec.set_patience(2);
  v1::StateReason reason;
  EXPECT_EQ(StopsAfter(Make(spec), {3, 2, 2.5, 1, 1, 1.1}, &reason), 6);
  EXPECT_EQ(reason, v1::STATE_REASON_NO_IMPROVEMENT);
  EXPECT_EQ(StopsAfter(Make(spec), {3, 3, 2, 2, 1, 1, 0}, &reason), 0);
  spec.set_patience(1);
  EXPECT_EQ(StopsAfter(Make(spec), {3, 2, 2}, &reason), 3);
  // An improvement of at most min_delta does not count. The best loss stays.
  spec.set_patience(2);
  spec.set_min_delta(0.5);
  EXPECT_EQ(StopsAfter(Make(spec), {3, 2.75, 2.5}, &reason), 3);
  EXPECT_EQ(StopsAfter(Make(spec), {3, 2.75, 2.25, 2}, &reason), 0);
  // NaN is no improvement.
  EXPECT_EQ(StopsAfter(Make(spec), {3, std::nan(""), std::nan("")}, &reason), 3);
  // The first number after NaN is an improvement.
  EXPECT_EQ(StopsAfter(Make(spec), {std::nan(""), 3, 2, 1}, &reason), 0);
  EXPECT_EQ(StopsAfter(Make(spec), {std::nan(""), std::nan(""), 3, 2}, &reason), 0);
  EXPECT_EQ(StopsAfter(Make(spec), {std::nan(""), std::nan(""), std::nan("")}, &reason), 3);
}

TEST(EarlyStoppingTest, StopsAtATarget) {
  v1::EarlyStopping spec;
  spec.set_target(0.5);
  v1::StateReason reason;
  EXPECT_EQ(StopsAfter(Make(spec), {3, 0.6, 0.5, 0.1}, &reason), 3);
  EXPECT_EQ(reason, v1::STATE_REASON_TARGET_REACHED);
  EXPECT_EQ(StopsAfter(Make(spec), {3, 0.6, std::nan("")}, &reason), 0);
}

TEST(EarlyStoppingTest, FollowsAMetricUpwards) {
  v1::EarlyStopping spec;
  spec.set_metric("accuracy");
  spec.set_patience(1);
  EarlyStopping stopping = Make(spec);
  EXPECT_EQ(stopping.Observe(Measured(1, 0.5), 1).reason, v1::STATE_REASON_UNSPECIFIED);
  EXPECT_EQ(stopping.Observe(Measured(2, 0.6), 2).reason, v1::STATE_REASON_UNSPECIFIED);
  const TrainingOutcome end = stopping.Observe(Measured(0, 0.6), 3);
  EXPECT_EQ(end.reason, v1::STATE_REASON_NO_IMPROVEMENT);
  EXPECT_EQ(
      end.message,
      "The accuracy has not improved in the last 1 measurement: it is 0.6 after step 3, and was 0.6 after "
      "step 2.");
}

TEST(EarlyStoppingTest, TheWayFollowsAMetricThatIsChangedLater) {
  v1::EarlyStopping spec;
  spec.set_metric("accuracy");
  spec.set_patience(1);
  FillEarlyStoppingDefaults(&spec);
  spec.set_metric("loss");
  v1::StateReason reason;
  EXPECT_EQ(StopsAfter(Make(spec), {3, 2, 1, 1.5}, &reason), 4);
}

TEST(EarlyStoppingTest, GoesOnFromItsState) {
  v1::EarlyStopping spec;
  spec.set_patience(2);
  EarlyStopping first = Make(spec);
  first.Observe(Measured(1), 1);
  first.Observe(Measured(2), 2);
  EarlyStopping second = Make(spec);
  second.Restore(first.state());
  EXPECT_EQ(second.Observe(Measured(1), 3).reason, v1::STATE_REASON_NO_IMPROVEMENT);
}

TEST(EarlyStoppingTest, IsChecked) {
  v1::Training training;
  training.add_metrics(v1::METRIC_ACCURACY);
  const auto faults = [&] {
    v1::Training filled = training;
    FillEarlyStoppingDefaults(filled.mutable_early_stopping());
    FieldViolations violations;
    CheckEarlyStopping(filled, violations);
    std::vector<std::string> fields;
    for (const FieldViolation& violation : GetFieldViolations(violations.ToStatus())) {
      fields.push_back(violation.field);
    }
    return fields;
  };
  v1::EarlyStopping& spec = *training.mutable_early_stopping();
  EXPECT_THAT(faults(), ::testing::ElementsAre("training.early_stopping"));
  spec.set_patience(3);
  EXPECT_THAT(faults(), ::testing::IsEmpty());
  spec.set_patience(0);
  spec.set_min_delta(-1);
  spec.set_target(std::nan(""));
  spec.set_max_seconds(0);
  spec.set_metric("acuracy");
  EXPECT_THAT(faults(), ::testing::UnorderedElementsAre(
                            "training.early_stopping.patience", "training.early_stopping.min_delta",
                            "training.early_stopping.target", "training.early_stopping.max_seconds",
                            "training.early_stopping.metric"));
}

}  // namespace
}  // namespace tandem
