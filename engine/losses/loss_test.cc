#include "engine/losses/loss.h"

#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "engine/graph/ops/class_loss.h"
#include "engine/graph/ops/value_loss.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

v1::Loss Parse(const std::string& text) {
  v1::Loss loss = FromText<v1::Loss>(text);
  FillLossDefaults(&loss);
  return loss;
}

const Target kClasses = {TargetKind::kClass, Shape(), 10};
const Target kTwoClasses = {TargetKind::kClass, Shape(), 2};
const Target kMixed = {TargetKind::kClassProbabilities, Shape({10}), 10};
const Target kTokens = {TargetKind::kTokens, Shape({7}), 50};
const Target kValues = {TargetKind::kValues, Shape({3}), 0};

TEST(LossTest, NamesTheFieldsAtFault) {
  EXPECT_EQ(GetFieldViolations(CheckLoss(v1::Loss())).size(), 1);
  for (const char* good : {"softmax_cross_entropy {}", "negative_log_likelihood {}", "mse {}", "l1 {}",
                           "huber {}", "smooth_l1 {}", "binary_cross_entropy_with_logits {}",
                           "kl_divergence {}", "hinge {}", "cosine_embedding {}"}) {
    EXPECT_TRUE(CheckLoss(Parse(good)).ok()) << good << CheckLoss(Parse(good));
  }
  const auto fault = [](const std::string& text) { return FieldAtFault(CheckLoss(Parse(text))); };
  EXPECT_EQ(fault("softmax_cross_entropy { label_smoothing: 1 }"), "softmax_cross_entropy.label_smoothing");
  EXPECT_EQ(fault("softmax_cross_entropy { class_weights: [1, -1] }"),
            "softmax_cross_entropy.class_weights[1]");
  EXPECT_EQ(fault("negative_log_likelihood { class_weights: [0, 0] }"),
            "negative_log_likelihood.class_weights");
  EXPECT_EQ(fault("huber { delta: 0 }"), "huber.delta");
  EXPECT_EQ(fault("smooth_l1 { beta: nan }"), "smooth_l1.beta");
  EXPECT_EQ(fault("binary_cross_entropy_with_logits { pos_weight: inf }"),
            "binary_cross_entropy_with_logits.pos_weight[0]");
  EXPECT_EQ(fault("hinge { p: 3 }"), "hinge.p");
  EXPECT_EQ(fault("cosine_embedding { margin: 1.5 }"), "cosine_embedding.margin");
}

TEST(LossTest, RefusesTargetsThatDoNotFit) {
  const auto fault = [](const std::string& text, const Target& target) {
    return FieldAtFault(CheckLossTarget(Parse(text), target));
  };
  for (const char* loss : {"softmax_cross_entropy {}", "negative_log_likelihood {}"}) {
    EXPECT_EQ(fault(loss, kClasses), "");
    EXPECT_EQ(fault(loss, kTokens), "");
    EXPECT_NE(fault(loss, kValues), "");
  }
  EXPECT_EQ(fault("softmax_cross_entropy {}", kMixed), "");
  EXPECT_EQ(fault("hinge {}", kMixed), "hinge");
  EXPECT_EQ(fault("hinge {}", kTokens), "hinge");
  for (const char* loss : {"mse {}", "l1 {}", "huber {}", "smooth_l1 {}", "kl_divergence {}"}) {
    EXPECT_EQ(fault(loss, kValues), "");
    EXPECT_NE(fault(loss, kClasses), "");
    EXPECT_NE(fault(loss, kTwoClasses), "");
    EXPECT_NE(fault(loss, kTokens), "");
  }
  for (const char* loss : {"binary_cross_entropy_with_logits {}", "cosine_embedding {}"}) {
    EXPECT_EQ(fault(loss, kValues), "");
    EXPECT_EQ(fault(loss, kTwoClasses), "");
    EXPECT_NE(fault(loss, kClasses), "");
  }
  EXPECT_EQ(fault("softmax_cross_entropy { class_weights: [1, 2] }", kClasses),
            "softmax_cross_entropy.class_weights");
  EXPECT_EQ(fault("softmax_cross_entropy { ignore_index: 10 }", kClasses),
            "softmax_cross_entropy.ignore_index");
  EXPECT_EQ(fault("softmax_cross_entropy { ignore_index: 9 }", kClasses), "");
  EXPECT_EQ(fault("softmax_cross_entropy { ignore_index: -100 }", kClasses), "");
  const Target holed = {.kind = TargetKind::kClass, .shape = Shape(), .classes = 10, .ignored = -100};
  EXPECT_EQ(fault("softmax_cross_entropy { ignore_index: -100 }", holed), "");
  EXPECT_EQ(fault("softmax_cross_entropy { ignore_index: -1 }", holed), "softmax_cross_entropy.ignore_index");
  EXPECT_EQ(fault("softmax_cross_entropy {}", holed), "softmax_cross_entropy.ignore_index");
  EXPECT_EQ(fault("hinge {}", holed), "hinge");
  EXPECT_EQ(fault("softmax_cross_entropy { ignore_index: 9 }", kMixed), "softmax_cross_entropy.ignore_index");
  EXPECT_EQ(fault("binary_cross_entropy_with_logits { pos_weight: [1, 2] }", kValues),
            "binary_cross_entropy_with_logits.pos_weight");
  EXPECT_EQ(fault("binary_cross_entropy_with_logits { pos_weight: [1, 2, 3] }", kValues), "");
}

TEST(LossTest, SaysWhatOutputItNeeds) {
  const auto fits = [](const std::string& loss, const Target& target, const Shape& output) {
    return OutputFault(Parse(loss), target, output).empty();
  };
  EXPECT_TRUE(fits("softmax_cross_entropy {}", kClasses, {10}));
  EXPECT_TRUE(fits("softmax_cross_entropy {}", kMixed, {10}));
  EXPECT_TRUE(fits("softmax_cross_entropy {}", kTokens, {7, 50}));
  EXPECT_FALSE(fits("softmax_cross_entropy {}", kTokens, {50}));
  EXPECT_TRUE(fits("mse {}", kValues, {3}));
  EXPECT_FALSE(fits("mse {}", kValues, {1}));
  EXPECT_TRUE(fits("binary_cross_entropy_with_logits {}", kTwoClasses, {1}));
  EXPECT_FALSE(fits("binary_cross_entropy_with_logits {}", kTwoClasses, {2}));
  EXPECT_TRUE(fits("cosine_embedding {}", kTwoClasses, {2, 5}));
  EXPECT_FALSE(fits("cosine_embedding {}", kTwoClasses, {5}));
  EXPECT_EQ(OutputFault(Parse("hinge {}"), kClasses, Shape({5})),
            "gives [5], but the loss needs [10]: one output for each of the data set's 10 classes");
}

// Returns the kind of the op for a batch of two samples. Sets `values` to its loss.
std::string KindOf(const std::string& text, const Target& target, const Shape& output, LossValues* values) {
  Graph graph;
  const bool numbers = target.kind == TargetKind::kValues || target.kind == TargetKind::kClassProbabilities;
  const ValueId x = graph.AddInput("x", DType::kFloat32, output.Batched(2));
  const ValueId y = graph.AddInput("y", numbers ? DType::kFloat32 : DType::kInt32, target.shape.Batched(2));
  const absl::StatusOr<LossValues> loss = AddLoss(Parse(text), x, y, graph);
  EXPECT_TRUE(loss.ok()) << loss.status();
  if (!loss.ok()) return "";
  *values = *loss;
  EXPECT_EQ(graph.value(loss->loss).shape, Shape());
  return std::string(graph.node(graph.value(loss->loss).producer).op->kind());
}

TEST(LossTest, AMeanIsWeightedWhereSamplesAre) {
  LossValues values;
  EXPECT_EQ(KindOf("softmax_cross_entropy {}", kClasses, {10}, &values), "softmax_cross_entropy");
  EXPECT_EQ(values.weight, kNoValue);
  EXPECT_EQ(KindOf("softmax_cross_entropy {}", kTokens, {7, 50}, &values), "softmax_cross_entropy");
  EXPECT_EQ(KindOf("softmax_cross_entropy { label_smoothing: 0.1 }", kClasses, {10}, &values), "class_loss");
  EXPECT_EQ(values.weight, kNoValue);
  EXPECT_EQ(KindOf("softmax_cross_entropy { ignore_index: 3 }", kClasses, {10}, &values), "class_loss");
  EXPECT_NE(values.sum, kNoValue);
  EXPECT_NE(values.weight, kNoValue);
  EXPECT_EQ(KindOf("softmax_cross_entropy {}", kMixed, {10}, &values), "class_loss");
  EXPECT_EQ(values.weight, kNoValue);
  EXPECT_EQ(KindOf("negative_log_likelihood { class_weights: [1, 2] }", kTwoClasses, {2}, &values),
            "class_loss");
  EXPECT_NE(values.weight, kNoValue);
  EXPECT_EQ(KindOf("hinge { class_weights: [1, 2] }", kTwoClasses, {2}, &values), "class_loss");
  EXPECT_EQ(values.weight, kNoValue);
  EXPECT_EQ(KindOf("binary_cross_entropy_with_logits {}", kTwoClasses, {1}, &values), "value_loss");
  EXPECT_EQ(KindOf("kl_divergence {}", kValues, {3}, &values), "value_loss");
  EXPECT_EQ(KindOf("cosine_embedding {}", kTwoClasses, {2, 5}, &values), "cosine_embedding");
  EXPECT_EQ(KindOf("cosine_embedding {}", kValues, {3}, &values), "cosine_embedding");
}

TEST(LossTest, SettingsFollowTheirClasses) {
  const auto relabelled = [](const std::string& text, const std::vector<int32_t>& labels) {
    v1::Loss loss = FromText<v1::Loss>(text);
    EXPECT_TRUE(RelabelClasses(labels, &loss).ok()) << text;
    return loss.ShortDebugString();
  };
  const auto same = [](const std::string& text) { return FromText<v1::Loss>(text).ShortDebugString(); };
  // Class 0 has the label 1, class 1 the label 2, class 2 the label 0.
  const std::vector<int32_t> labels = {1, 2, 0};
  for (const char* kind : {"softmax_cross_entropy", "negative_log_likelihood", "hinge"}) {
    const std::string given = absl::StrCat(kind, " { class_weights: [5, 0.5, 1] }");
    EXPECT_EQ(relabelled(given, labels), same(absl::StrCat(kind, " { class_weights: [1, 5, 0.5] }")));
    EXPECT_EQ(relabelled(given, {}), same(given));
  }
  for (const char* kind : {"softmax_cross_entropy", "negative_log_likelihood"}) {
    const auto ignoring = [&](int number) { return absl::StrCat(kind, " { ignore_index: ", number, " }"); };
    EXPECT_EQ(relabelled(ignoring(0), labels), same(ignoring(1)));
    EXPECT_EQ(relabelled(ignoring(2), labels), same(ignoring(0)));
    EXPECT_EQ(relabelled(ignoring(-100), labels), same(ignoring(-100)));
    // CheckLossTarget reports this.
    EXPECT_EQ(relabelled(ignoring(3), labels), same(ignoring(3)));
  }
  for (const char* other : {"softmax_cross_entropy { class_weights: [1, 2] }", "mse {}",
                            "binary_cross_entropy_with_logits { pos_weight: 1 }"}) {
    EXPECT_EQ(relabelled(other, labels), same(other));
  }
  const auto fault = [](const std::string& text, const std::vector<int32_t>& labels) {
    v1::Loss loss = FromText<v1::Loss>(text);
    return FieldAtFault(RelabelClasses(labels, &loss));
  };
  EXPECT_EQ(fault("binary_cross_entropy_with_logits { pos_weight: 2 }", {1, 0}),
            "binary_cross_entropy_with_logits.pos_weight");
  EXPECT_EQ(fault("binary_cross_entropy_with_logits { pos_weight: 2 }", {}), "");
  // Two classes of the data are one class of the model.
  EXPECT_EQ(fault("hinge { class_weights: [1, 2, 3] }", {1, 1, 0}), "hinge.class_weights");
  EXPECT_EQ(fault("softmax_cross_entropy { ignore_index: 2 }", {1, 1, 0}),
            "softmax_cross_entropy.ignore_index");
  EXPECT_EQ(fault("softmax_cross_entropy {}", {1, 1, 0}), "");
}

TEST(LossTest, ClassesAreBalancedByTheirCounts) {
  v1::Loss loss = Parse("softmax_cross_entropy { balance_classes: true }");
  EXPECT_TRUE(CheckLoss(loss).ok());
  EXPECT_EQ(FieldAtFault(CheckLossTarget(loss, kTokens)), "softmax_cross_entropy.balance_classes");
  EXPECT_EQ(
      FieldAtFault(CheckLoss(Parse("softmax_cross_entropy { balance_classes: true class_weights: 1 }"))),
      "softmax_cross_entropy.balance_classes");
  BalanceClasses({30, 10, 0}, &loss);
  const v1::SoftmaxCrossEntropy& softmax = loss.softmax_cross_entropy();
  EXPECT_FALSE(softmax.balance_classes());
  ASSERT_EQ(softmax.class_weights_size(), 3);
  EXPECT_DOUBLE_EQ(softmax.class_weights(0), 40.0 / 90);
  EXPECT_DOUBLE_EQ(softmax.class_weights(1), 40.0 / 30);
  EXPECT_EQ(softmax.class_weights(2), 0);
}

}  // namespace
}  // namespace tandem
