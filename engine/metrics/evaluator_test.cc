#include "engine/metrics/evaluator.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/metrics/area_under_curve.h"
#include "engine/tensor/tensor.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr char kAll[] =
    "metrics: [METRIC_PRECISION, METRIC_RECALL, METRIC_F1, METRIC_CONFUSION_MATRIX, METRIC_AUC]";

TEST(AreaUnderCurveTest, CountsPairs) {
  EXPECT_EQ(AreaUnderCurve({{0.1f, false}, {0.4f, false}, {0.35f, true}, {0.8f, true}}), 0.75);
  EXPECT_EQ(AreaUnderCurve({{1, true}, {1, false}}), 0.5);
  EXPECT_EQ(AreaUnderCurve({{1, true}, {1, false}, {0, false}, {2, true}, {1, true}}), 5.0 / 6);
  EXPECT_EQ(AreaUnderCurve({{1, true}, {2, true}}), std::nullopt);
  EXPECT_EQ(AreaUnderCurve({}), std::nullopt);
  EXPECT_EQ(AreaUnderCurve({{std::numeric_limits<float>::quiet_NaN(), false}, {-5, true}}), 1);
}

TEST(EvaluatorTest, IsNeededWhereNoMeterMeasures) {
  EXPECT_FALSE(Evaluator::IsNeeded(FromText<v1::Training>("metrics: [METRIC_ACCURACY, METRIC_RMSE]")));
  EXPECT_TRUE(Evaluator::IsNeeded(FromText<v1::Training>("metrics: [METRIC_ACCURACY, METRIC_F1]")));
}

// Expected values from scikit-learn, with averages "macro" and "ovr".
TEST(EvaluatorTest, MeasuresClasses) {
  const Target target = {TargetKind::kClass, Shape(), 3};
  const v1::Training training =
      FromText<v1::Training>(std::string("loss { softmax_cross_entropy {} } ") + kAll);
  // The predicted classes: 0, 1, 1, 2, 0, 0.
  const std::vector<float> outputs = {2, 1, 0, 0, 3, 1, 0, 2, 1, 0, 1, 4, 5, 1, 2, 1, 0.5f, 0};
  const std::vector<int32_t> labels = {0, 1, 0, 2, 0, 2};
  Evaluator whole(training, target);
  whole.Add(Tensor::Of<float>({6, 3}, outputs), labels.data());
  // In two parts, as by two replicas.
  Evaluator part(training, target);
  part.Add(Tensor::Of<float>({2, 3}, {outputs.begin() + 12, outputs.end()}), labels.data() + 4);
  Evaluator rest(training, target);
  rest.Add(Tensor::Of<double>({4, 3}, {outputs.begin(), outputs.begin() + 12}), labels.data());
  part.Merge(rest);
  for (const Evaluator* evaluator : {&whole, &part}) {
    v1::Evaluation evaluation;
    evaluator->Fill(&evaluation);
    const auto& metrics = evaluation.metrics();
    EXPECT_DOUBLE_EQ(metrics.at("precision"), (2.0 / 3 + 0.5 + 1) / 3);
    EXPECT_DOUBLE_EQ(metrics.at("recall"), (2.0 / 3 + 1 + 0.5) / 3);
    EXPECT_DOUBLE_EQ(metrics.at("f1"), (2.0 / 3 + 2.0 / 3 + 2.0 / 3) / 3);
    EXPECT_EQ(metrics.count("confusion_matrix"), 0);
    const v1::ClassificationReport& report = evaluation.classification();
    const auto& counts = report.confusion_matrix().counts();
    EXPECT_EQ(std::vector<int64_t>(counts.begin(), counts.end()),
              std::vector<int64_t>({2, 1, 0, 0, 1, 0, 1, 0, 1}));
    ASSERT_EQ(report.classes_size(), 3);
    EXPECT_EQ(report.classes(2).samples(), 2);
    EXPECT_EQ(report.classes(2).precision(), 1);
    // Probabilities of class 0: 0.67, 0.04, 0.09, 0.02, 0.94, 0.51. Samples 0, 2 and 4 belong to it.
    EXPECT_DOUBLE_EQ(report.classes(0).auc(), 8.0 / 9);
    EXPECT_DOUBLE_EQ(metrics.at("auc"),
                     (report.classes(0).auc() + report.classes(1).auc() + report.classes(2).auc()) / 3);
  }
}

// A probability that rounds to 1 in float32 still has its rank.
TEST(EvaluatorTest, RanksWhatIsNearlySure) {
  const Target target = {TargetKind::kClass, Shape(), 3};
  Evaluator evaluator(FromText<v1::Training>("loss { softmax_cross_entropy {} } metrics: METRIC_AUC"),
                      target);
  const std::vector<int32_t> labels = {0, 1, 0, 2};
  evaluator.Add(Tensor::Of<float>({4, 3}, {60, 0, 0, 50, 0, 0, 70, 0, 0, 40, 0, 0}), labels.data());
  v1::Evaluation evaluation;
  evaluator.Fill(&evaluation);
  EXPECT_EQ(evaluation.classification().classes(0).auc(), 1);
}

// In double precision, the exponentials of logits more than 745 apart are 0.
TEST(EvaluatorTest, RanksLogitsThatAreFarApart) {
  Evaluator evaluator(FromText<v1::Training>("loss { softmax_cross_entropy {} } metrics: METRIC_AUC"),
                      {TargetKind::kClass, Shape(), 3});
  const std::vector<float> outputs = {900, 0, 0, 1000, 0, 0, 800, 0, 0, -2000, 0, -900, -1000, 0, -900};
  const std::vector<int32_t> labels = {0, 0, 1, 2, 0};
  evaluator.Add(Tensor::Of<float>({5, 3}, outputs), labels.data());
  v1::Evaluation evaluation;
  evaluator.Fill(&evaluation);
  EXPECT_EQ(evaluation.classification().classes(0).auc(), 5.0 / 6);
}

// A log-probability of minus infinity is a probability of 0.
TEST(EvaluatorTest, RanksImpossibleClasses) {
  Evaluator evaluator(FromText<v1::Training>("loss { negative_log_likelihood {} } metrics: METRIC_AUC"),
                      {TargetKind::kClass, Shape(), 3});
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> outputs = {0, none, none, -0.1f, -2.4f, -7, none, 0, none};
  const std::vector<int32_t> labels = {0, 1, 2};
  evaluator.Add(Tensor::Of<float>({3, 3}, outputs), labels.data());
  v1::Evaluation evaluation;
  evaluator.Fill(&evaluation);
  EXPECT_EQ(evaluation.classification().classes(0).auc(), 1);
  EXPECT_EQ(evaluation.classification().classes(1).auc(), 0.5);
}

TEST(EvaluatorTest, MeasuresSides) {
  const Target target = {TargetKind::kValues, Shape({1}), 0};
  const v1::Training training =
      FromText<v1::Training>(std::string("loss { binary_cross_entropy_with_logits {} } ") + kAll);
  Evaluator evaluator(training, target);
  const std::vector<float> targets = {1, 0, 1, 0};
  evaluator.Add(Tensor::Of<float>({4, 1}, {2, -1, -0.5f, 0.25f}), targets.data());
  v1::Evaluation evaluation;
  evaluator.Fill(&evaluation);
  EXPECT_EQ(evaluation.classification().classes_size(), 2);
  EXPECT_EQ(evaluation.classification().classes(1).recall(), 0.5);
  EXPECT_EQ(evaluation.metrics().at("precision"), 0.5);
  EXPECT_EQ(evaluation.metrics().at("auc"), 0.75);
  // Classes instead of numbers.
  Evaluator of_classes(training, {TargetKind::kClass, Shape(), 2});
  const std::vector<int32_t> labels = {1, 0, 1, 0};
  of_classes.Add(Tensor::Of<float>({4, 1}, {2, -1, -0.5f, 0.25f}), labels.data());
  v1::Evaluation again;
  of_classes.Fill(&again);
  EXPECT_EQ(again.SerializeAsString().size(), evaluation.SerializeAsString().size());
  EXPECT_EQ(again.metrics().at("auc"), 0.75);
}

TEST(EvaluatorTest, MeasuresEachOfSeveralSides) {
  Evaluator evaluator(
      FromText<v1::Training>("loss { binary_cross_entropy_with_logits {} } metrics: METRIC_AUC"),
      {TargetKind::kValues, Shape({2}), 0});
  const std::vector<float> targets = {1, 0, 0, 1, 1, 1};
  evaluator.Add(Tensor::Of<float>({3, 2}, {1, 1, 2, 3, 3, 2}), targets.data());
  v1::Evaluation evaluation;
  evaluator.Fill(&evaluation);
  EXPECT_EQ(evaluation.metrics().at("auc"), 0.75);
  EXPECT_EQ(evaluation.classification().classes_size(), 0);
}

TEST(EvaluatorTest, LeavesOutWhatIsIgnored) {
  Evaluator evaluator(
      FromText<v1::Training>("loss { softmax_cross_entropy { ignore_index: 1 } } metrics: [METRIC_RECALL, "
                             "METRIC_CONFUSION_MATRIX]"),
      {TargetKind::kClass, Shape(), 2});
  const std::vector<int32_t> labels = {0, 1, 1};
  evaluator.Add(Tensor::Of<float>({3, 2}, {1, 0, 0, 1, 1, 0}), labels.data());
  v1::Evaluation evaluation;
  evaluator.Fill(&evaluation);
  EXPECT_EQ(evaluation.metrics().at("recall"), 1);
  EXPECT_EQ(evaluation.classification().confusion_matrix().counts(0), 1);
  EXPECT_EQ(evaluation.classification().confusion_matrix().counts(3), 0);
}

// The macro averages of scikit-learn, by hand. They leave out labels without samples and predictions.
TEST(EvaluatorTest, MeansLeaveOutClassesThatAreNotThere) {
  const v1::Training training = FromText<v1::Training>(
      "loss { softmax_cross_entropy { ignore_index: 3 } } metrics: [METRIC_PRECISION, METRIC_RECALL, "
      "METRIC_F1]");
  const Target target = {TargetKind::kClass, Shape(), 4};
  const auto evaluate = [&](const std::vector<int32_t>& labels, const std::vector<int32_t>& answers) {
    Evaluator evaluator(training, target);
    std::vector<float> outputs(4 * answers.size(), 0);
    for (size_t i = 0; i < answers.size(); ++i) outputs[4 * i + answers[i]] = 1;
    evaluator.Add(Tensor::Of<float>({static_cast<int64_t>(answers.size()), 4}, outputs), labels.data());
    v1::Evaluation evaluation;
    evaluator.Fill(&evaluation);
    return evaluation;
  };
  // A perfect network. Class 2 has no sample, and class 3 is ignored.
  v1::Evaluation evaluation = evaluate({0, 1, 3, 1}, {0, 1, 2, 1});
  for (const char* name : {"precision", "recall", "f1"}) EXPECT_EQ(evaluation.metrics().at(name), 1) << name;
  EXPECT_EQ(evaluation.classification().classes_size(), 4);
  // A sample of class 0 is predicted as class 2, so class 2 counts. A prediction of the ignored class is
  // wrong.
  evaluation = evaluate({0, 0, 0, 1}, {0, 2, 3, 1});
  EXPECT_DOUBLE_EQ(evaluation.metrics().at("precision"), (1.0 + 1 + 0) / 3);
  EXPECT_DOUBLE_EQ(evaluation.metrics().at("recall"), (1.0 / 3 + 1 + 0) / 3);
  EXPECT_DOUBLE_EQ(evaluation.metrics().at("f1"), (2.0 / 4 + 1 + 0) / 3);
  // All samples are ignored.
  EXPECT_TRUE(evaluate({3, 3}, {0, 1}).metrics().empty());
}

TEST(EvaluatorTest, ThereIsNoAreaOfOneSort) {
  Evaluator evaluator(FromText<v1::Training>("loss { softmax_cross_entropy {} } metrics: METRIC_AUC"),
                      {TargetKind::kClass, Shape(), 2});
  const std::vector<int32_t> labels = {1, 1};
  evaluator.Add(Tensor::Of<float>({2, 2}, {1, 0, 0, 1}), labels.data());
  v1::Evaluation evaluation;
  evaluator.Fill(&evaluation);
  EXPECT_TRUE(evaluation.metrics().empty());
}

TEST(EvaluatorTest, MeasuresTheDetermination) {
  const v1::Training training = FromText<v1::Training>("loss { mse {} } metrics: METRIC_R2");
  const Target target = {TargetKind::kValues, Shape({1}), 0};
  EXPECT_TRUE(Evaluator::IsNeeded(training));
  const std::vector<float> targets = {1, 2, 3, 6};
  Evaluator first(training, target), second(training, target), copy(training, target);
  first.Add(Tensor::Of<float>({3, 1}, {1, 2, 5}), targets.data());
  second.Add(Tensor::Of<float>({1, 1}, {5}), targets.data() + 3);
  first.Merge(second);
  copy.FromNumbers(first.ToNumbers());
  for (const Evaluator* evaluator : {&first, &copy}) {
    v1::Evaluation evaluation;
    evaluator->Fill(&evaluation);
    // 1 - (0 + 0 + 4 + 1) / (4 + 1 + 0 + 9).
    EXPECT_DOUBLE_EQ(evaluation.metrics().at("r2"), 1 - 5.0 / 14);
    EXPECT_FALSE(evaluation.has_classification());
  }
  // All targets are equal.
  v1::Evaluation evaluation;
  second.Fill(&evaluation);
  EXPECT_TRUE(evaluation.metrics().empty());
}

}  // namespace
}  // namespace tandem
