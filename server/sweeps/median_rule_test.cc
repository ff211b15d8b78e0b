#include "server/sweeps/median_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

v1::EpochSummary EpochOf(int64_t epoch, double best) {
  v1::EpochSummary report;
  report.set_epoch(epoch);
  report.set_epochs(10);
  report.mutable_best()->set_metric("accuracy");
  report.mutable_best()->set_value(best);
  report.mutable_best()->set_validation(true);
  return report;
}

BestCurve CurveOf(const std::vector<double>& values) {
  BestCurve curve;
  for (size_t i = 0; i < values.size(); ++i) {
    v1::JobEvent event;
    *event.mutable_epoch() = EpochOf(static_cast<int64_t>(i) + 1, values[i]);
    curve.Add(event);
  }
  return curve;
}

v1::Sweep SweepOf(v1::PlateauMode mode, int min_jobs, int min_epochs) {
  v1::Sweep sweep;
  sweep.mutable_objective()->set_mode(mode);
  sweep.mutable_pruning()->set_min_jobs(min_jobs);
  sweep.mutable_pruning()->set_min_epochs(min_epochs);
  return sweep;
}

TEST(BestCurveTest, TheLastValueCountsForLaterEpochs) {
  const BestCurve curve = CurveOf({0.5, 0.6});
  EXPECT_FALSE(curve.After(0).has_value());
  EXPECT_EQ(curve.After(1), 0.5);
  EXPECT_EQ(curve.After(2), 0.6);
  EXPECT_EQ(curve.After(9), 0.6);
}

TEST(BestCurveTest, ARepeatedEpochReplacesTheEarlierAttempt) {
  BestCurve curve = CurveOf({0.5, 0.6, 0.9});
  v1::JobEvent event;
  // A later attempt continues from the checkpoint after epoch 1, and ends with epoch 2.
  *event.mutable_epoch() = EpochOf(2, 0.55);
  curve.Add(event);
  EXPECT_EQ(curve.After(1), 0.5);
  EXPECT_EQ(curve.After(2), 0.55);
  EXPECT_EQ(curve.After(3), 0.55);
}

TEST(BestCurveTest, KeepsOnlyChanges) {
  std::vector<double> values(1000, 0.5);
  values.resize(2000, 0.6);
  const BestCurve curve = CurveOf(values);
  EXPECT_EQ(curve.size(), 2);
  EXPECT_EQ(curve.After(1000), 0.5);
  EXPECT_EQ(curve.After(1001), 0.6);
}

TEST(BestCurveTest, IgnoresWhatIsNoMeasurement) {
  BestCurve curve;
  v1::JobEvent event;
  event.mutable_progress();
  curve.Add(event);
  event.mutable_epoch()->set_epoch(1);
  curve.Add(event);
  *event.mutable_epoch() = EpochOf(2, std::numeric_limits<double>::quiet_NaN());
  curve.Add(event);
  EXPECT_FALSE(curve.After(5).has_value());
}

TEST(MedianRuleTest, StopsWhatIsWorseThanTheMedian) {
  MedianRule rule(SweepOf(v1::PLATEAU_MODE_MAX, 3, 0));
  rule.Add("a", CurveOf({0.1, 0.7}));
  rule.Add("b", CurveOf({0.2, 0.8}));
  EXPECT_FALSE(rule.WhyStop(EpochOf(1, 0.05)).has_value());
  rule.Add("c", CurveOf({0.3, 0.9}));
  EXPECT_EQ(
      *rule.WhyStop(EpochOf(1, 0.19)),
      "Its best validation accuracy after epoch 1 was 0.19, worse than 0.2, the median of 3 jobs of its "
      "sweep.");
  // As good as the median.
  EXPECT_FALSE(rule.WhyStop(EpochOf(1, 0.2)).has_value());
  // At the second epoch the others were better.
  EXPECT_TRUE(rule.WhyStop(EpochOf(2, 0.79)).has_value());
  EXPECT_FALSE(rule.WhyStop(EpochOf(2, 0.81)).has_value());
  EXPECT_TRUE(rule.WhyStop(EpochOf(7, 0.79)).has_value());
}

TEST(MedianRuleTest, ComparesNoTrainingWithValidation) {
  MedianRule rule(SweepOf(v1::PLATEAU_MODE_MAX, 1, 0));
  rule.Add("a", CurveOf({0.5}));
  v1::EpochSummary epoch = EpochOf(1, 0.1);
  epoch.mutable_best()->set_validation(false);
  EXPECT_FALSE(rule.WhyStop(epoch).has_value());
  epoch.mutable_best()->set_validation(true);
  EXPECT_TRUE(rule.WhyStop(epoch).has_value());
}

TEST(MedianRuleTest, ADeletedJobDoesNotCount) {
  MedianRule rule(SweepOf(v1::PLATEAU_MODE_MAX, 1, 0));
  rule.Add("a", CurveOf({0.5}));
  rule.Remove("a");
  rule.Remove("b");
  EXPECT_FALSE(rule.WhyStop(EpochOf(1, 0.1)).has_value());
}

TEST(MedianRuleTest, ASmallerLossIsBetter) {
  MedianRule rule(SweepOf(v1::PLATEAU_MODE_MIN, 2, 0));
  rule.Add("a", CurveOf({1.0}));
  rule.Add("b", CurveOf({2.0}));
  // The mean of the two in the middle is 1.5.
  EXPECT_FALSE(rule.WhyStop(EpochOf(1, 1.5)).has_value());
  EXPECT_TRUE(rule.WhyStop(EpochOf(1, 1.6)).has_value());
}

TEST(MedianRuleTest, AJobHasItsFirstEpochsAndItsLastEpoch) {
  MedianRule rule(SweepOf(v1::PLATEAU_MODE_MAX, 1, 3));
  rule.Add("a", CurveOf({0.5, 0.6, 0.7}));
  EXPECT_FALSE(rule.WhyStop(EpochOf(2, 0.1)).has_value());
  EXPECT_TRUE(rule.WhyStop(EpochOf(3, 0.1)).has_value());
  EXPECT_FALSE(rule.WhyStop(EpochOf(10, 0.1)).has_value());
  v1::EpochSummary unmeasured;
  unmeasured.set_epoch(5);
  unmeasured.set_epochs(10);
  EXPECT_FALSE(rule.WhyStop(unmeasured).has_value());
}

TEST(MedianRuleTest, FiveJobsMustSucceedByDefault) {
  MedianRule rule(SweepOf(v1::PLATEAU_MODE_MAX, 0, 0));
  for (int i = 0; i < 4; ++i) rule.Add(absl::StrCat("job", i), CurveOf({0.5}));
  // A job without a measurement does not count.
  rule.Add("unmeasured", BestCurve());
  EXPECT_FALSE(rule.WhyStop(EpochOf(1, 0.1)).has_value());
  rule.Add("job3", CurveOf({0.6}));
  EXPECT_FALSE(rule.WhyStop(EpochOf(1, 0.1)).has_value());
  rule.Add("job4", CurveOf({0.5}));
  EXPECT_TRUE(rule.WhyStop(EpochOf(1, 0.1)).has_value());
}

}  // namespace
}  // namespace tandem
