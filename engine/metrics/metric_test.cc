#include "engine/metrics/metric.h"

#include <cmath>
#include <string>
#include <vector>

#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "engine/metrics/evaluator.h"
#include "engine/metrics/meter.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

v1::Training Parse(const std::string& text) {
  v1::Training training = FromText<v1::Training>(text);
  FillMetricDefaults(&training);
  return training;
}

const Target kClasses = {TargetKind::kClass, Shape(), 10};
const Target kTokens = {TargetKind::kTokens, Shape({7}), 50};

TEST(MetricTest, DefaultsFollowTheLoss) {
  EXPECT_EQ(Parse("loss { softmax_cross_entropy {} }").metrics(0), v1::METRIC_ACCURACY);
  EXPECT_EQ(Parse("loss { binary_cross_entropy_with_logits {} }").metrics(0), v1::METRIC_ACCURACY);
  EXPECT_EQ(Parse("loss { huber {} }").metrics(0), v1::METRIC_MAE);
  EXPECT_TRUE(Parse("loss { cosine_embedding {} }").metrics().empty());
  EXPECT_EQ(Parse("loss { hinge {} } metrics: METRIC_TOP_K").top_k(), 5);
  EXPECT_EQ(MetricName(v1::METRIC_TOP_K, Parse("loss { hinge {} } metrics: METRIC_TOP_K top_k: 3")),
            "top_3_accuracy");
}

TEST(MetricTest, RefusesWhatDoesNotGoWithTheLoss) {
  const auto fault = [](const std::string& text) { return FieldAtFault(CheckMetrics(Parse(text))); };
  EXPECT_EQ(
      fault("loss { softmax_cross_entropy {} } metrics: [METRIC_ACCURACY, METRIC_TOP_K, METRIC_PRECISION, "
            "METRIC_RECALL, METRIC_F1, METRIC_CONFUSION_MATRIX, METRIC_AUC, METRIC_PERPLEXITY]"),
      "");
  EXPECT_EQ(fault("loss { mse {} } metrics: [METRIC_MAE, METRIC_RMSE]"), "");
  EXPECT_EQ(fault("loss { mse {} } metrics: METRIC_ACCURACY"), "metrics[0]");
  EXPECT_EQ(fault("loss { hinge {} } metrics: [METRIC_ACCURACY, METRIC_RMSE]"), "metrics[1]");
  EXPECT_EQ(fault("loss { hinge {} } metrics: METRIC_PERPLEXITY"), "metrics[0]");
  EXPECT_EQ(fault("loss { softmax_cross_entropy { balance_classes: true } } metrics: METRIC_PERPLEXITY"),
            "metrics[0]");
  EXPECT_EQ(fault("loss { softmax_cross_entropy { label_smoothing: 0.1 } } metrics: METRIC_PERPLEXITY"),
            "metrics[0]");
  EXPECT_EQ(fault("loss { binary_cross_entropy_with_logits {} } metrics: METRIC_TOP_K"), "metrics[0]");
  EXPECT_EQ(fault("loss { hinge {} } metrics: [METRIC_ACCURACY, METRIC_ACCURACY]"), "metrics[1]");
  EXPECT_EQ(fault("loss { hinge {} } metrics: METRIC_UNSPECIFIED"), "metrics[0]");
  EXPECT_EQ(fault("loss { hinge {} } top_k: 2"), "top_k");
  EXPECT_EQ(fault("loss { hinge {} } metrics: METRIC_TOP_K top_k: -2"), "top_k");
}

TEST(MetricTest, RefusesWhatDoesNotGoWithTheTargets) {
  const auto fault = [](const std::string& metrics, const Target& target, const Shape& output,
                        int64_t samples = 100) {
    return FieldAtFault(CheckMetricTargets(Parse("loss { softmax_cross_entropy {} } metrics: " + metrics),
                                           target, output, samples));
  };
  EXPECT_EQ(fault("METRIC_AUC", kClasses, {10}), "");
  EXPECT_EQ(fault("METRIC_AUC", kClasses, {10}, int64_t{1} << 26), "metrics[0]");
  EXPECT_EQ(fault("METRIC_F1", kTokens, {7, 50}), "metrics[0]");
  EXPECT_EQ(fault("METRIC_PERPLEXITY", kTokens, {7, 50}), "");
  EXPECT_EQ(fault("METRIC_CONFUSION_MATRIX", {TargetKind::kClass, Shape(), 257}, {257}), "metrics[0]");
  EXPECT_EQ(fault("METRIC_PRECISION", {TargetKind::kClass, Shape(), 257}, {257}), "");
  EXPECT_EQ(fault("METRIC_TOP_K top_k: 11", kClasses, {10}), "top_k");
  const v1::Training sides = Parse(
      "loss { binary_cross_entropy_with_logits {} } metrics: [METRIC_ACCURACY, METRIC_AUC, METRIC_RECALL]");
  const Target several = {TargetKind::kValues, Shape({3}), 0};
  EXPECT_EQ(FieldAtFault(CheckMetricTargets(sides, several, {3}, 100)), "metrics[2]");
  EXPECT_EQ(FieldAtFault(CheckMetricTargets(sides, {TargetKind::kValues, Shape({1}), 0}, {1}, 100)), "");
}

TEST(MetricTest, ReadsMeters) {
  const v1::Training training = Parse("loss { mse {} } metrics: [METRIC_RMSE, METRIC_MAE]");
  EXPECT_EQ(MeterShape(training), Shape({5}));
  v1::Evaluation evaluation;
  ReadMeter(training, {8, 4, 2, 18, 5}, &evaluation);
  EXPECT_EQ(evaluation.loss(), 2);
  EXPECT_EQ(evaluation.metrics().at("rmse"), 3);
  EXPECT_EQ(evaluation.metrics().at("mae"), 2.5);
  // All samples were ignored.
  const v1::Training language = Parse(
      "loss { softmax_cross_entropy { ignore_index: 0 } } metrics: [METRIC_ACCURACY, METRIC_PERPLEXITY, "
      "METRIC_F1]");
  EXPECT_EQ(MeterShape(language), Shape({5}));
  EXPECT_FALSE(HasLoss({0, 0, 0, 0, 0}));
  EXPECT_FALSE(HasLoss({}));
  EXPECT_TRUE(HasLoss({0, 1, 0, 0, 0}));
  evaluation.Clear();
  ReadMeter(language, {0, 0, 0, 0, 0}, &evaluation);
  EXPECT_TRUE(std::isnan(evaluation.loss()));
  EXPECT_TRUE(evaluation.metrics().empty());
  // Classes with weight 0 count as samples.
  ReadMeter(language, {0, 0, 4, 3, 0}, &evaluation);
  EXPECT_TRUE(std::isnan(evaluation.loss()));
  EXPECT_EQ(evaluation.metrics().at("accuracy"), 0.75);
  ReadMeter(language, {3, 2, 4, 1, 0}, &evaluation);
  EXPECT_EQ(evaluation.metrics().at("accuracy"), 0.25);
  EXPECT_EQ(evaluation.metrics().at("perplexity"), std::exp(1.5));
}

TEST(MetricTest, ReportsTheScaleOfTheData) {
  v1::Evaluation evaluation;
  const auto restored = [&](const std::string& loss, double deviation) {
    const v1::Training training = Parse("loss { " + loss + " } metrics: [METRIC_RMSE, METRIC_MAE]");
    evaluation.Clear();
    ReadMeter(training, {8, 4, 2, 18, 5}, &evaluation);
    RestoreTargetScale(training, deviation, &evaluation);
    return evaluation.loss();
  };
  EXPECT_EQ(restored("mse {}", 10), 200);
  EXPECT_EQ(evaluation.metrics().at("rmse"), 30);
  EXPECT_EQ(evaluation.metrics().at("mae"), 25);
  EXPECT_EQ(restored("huber {}", 10), 200);
  EXPECT_EQ(restored("l1 {}", 10), 20);
  EXPECT_EQ(restored("smooth_l1 {}", 10), 20);
  EXPECT_EQ(restored("mse {}", 0), 2) << "targets have their own scale";
}

}  // namespace
}  // namespace tandem
