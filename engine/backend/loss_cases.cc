#include "engine/backend/loss_cases.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/class_loss.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/cosine_embedding.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/value_loss.h"

namespace tandem {
namespace {

// Adds a class for each row of scores of this shape.
ValueId LabelsFor(CaseGraph& g, const Shape& scores) {
  const int64_t rows = scores.elements() / scores[-1];
  const ValueId labels = g.Labels("labels", rows, scores[-1]);
  if (scores.rank() == 2) return labels;
  return g.AddHidden(std::make_shared<ReshapeOp>(scores.UpTo(-1)), {labels})[0];
}

OpCase Classes(const std::string& name, Shape shape, ClassLossSettings settings, bool mixed = false) {
  return {absl::StrCat("class_loss ", name), [=](CaseGraph& g) {
            const ValueId scores = g.Input("scores", shape, -3, 3);
            // Rows need not add up to 1.
            const ValueId target = mixed ? g.Input("shares", shape, 0, 0.5) : LabelsFor(g, shape);
            g.Add(std::make_shared<ClassLossOp>(settings), {scores, target});
            g.Add(std::make_shared<ClassLossGradOp>(settings), {scores, target, g.Input("grad_loss", {})});
          }};
}

OpCase Values(const std::string& name, Shape shape, ValueLossSettings settings, double low = -1) {
  return {absl::StrCat("value_loss ", name), [=](CaseGraph& g) {
            const ValueId x = g.Input("x", shape, -3, 3);
            const ValueId y = g.Input("y", shape, low, 1);
            g.Add(std::make_shared<ValueLossOp>(settings), {x, y});
            g.Add(std::make_shared<ValueLossGradOp>(settings), {x, y, g.Input("grad_loss", {})});
          }};
}

// Two classes for a single score.
OpCase Sides() {
  return {"value_loss logistic, of classes", [](CaseGraph& g) {
            const ValueId x = g.Input("x", {9, 1}, -3, 3);
            const ValueId labels = g.Labels("labels", 9, 2);
            const ValueLossSettings settings = {.mode = ValueLossSettings::Mode::kLogistic,
                                                .positive_weights = {2.5}};
            g.Add(std::make_shared<ValueLossOp>(settings), {x, labels});
            g.Add(std::make_shared<ValueLossGradOp>(settings), {x, labels, g.Input("grad_loss", {})});
            g.Add(std::make_shared<CountSidesOp>(), {x, labels});
            g.Add(std::make_shared<CountSidesOp>(),
                  {g.Input("several", {5, 3}), g.Input("several targets", {5, 3}, 0, 1)});
          }};
}

OpCase Directions(const std::string& name, bool pairs, double margin, bool sum) {
  return {absl::StrCat("cosine_embedding ", name), [=](CaseGraph& g) {
            const ValueId x = pairs ? g.Input("pairs", {7, 2, 5}) : g.Input("x", {3, 2, 5});
            const ValueId y = pairs ? g.Labels("alike", 7, 2) : g.Input("y", {3, 2, 5});
            g.Add(std::make_shared<CosineEmbeddingOp>(margin, sum), {x, y});
            g.Add(std::make_shared<CosineEmbeddingGradOp>(margin, sum), {x, y, g.Input("grad_loss", {})});
          }};
}

// Tokens have rows in two dimensions.
OpCase Tokens(Shape shape) {
  return {absl::StrCat("softmax_cross_entropy of tokens ", shape.ToString()), [=](CaseGraph& g) {
            const ValueId logits = g.Input("logits", shape, -3, 3);
            const ValueId labels = LabelsFor(g, shape);
            const auto loss = g.Add(std::make_shared<SoftmaxCrossEntropyOp>(), {logits, labels});
            g.Add(std::make_shared<SoftmaxCrossEntropyGradOp>(), {loss[1], labels, g.Input("grad_loss", {})});
            g.Add(std::make_shared<CountCorrectOp>(), {logits, labels});
            g.Add(std::make_shared<CountCorrectOp>(2, 1), {logits, labels});
            g.Add(std::make_shared<CountLabelsOp>(1), {labels});
          }};
}

// The outputs that a training step needs of its scores: the gradient and the meter's numbers. With `shared`,
// a later op also reads the scores.
OpCase MeteredStep(Shape shape, int64_t k, bool shared) {
  return {absl::StrCat("softmax_cross_entropy in a step ", shape.ToString(), shared ? ", shared" : ""),
          [=](CaseGraph& g) {
            const ValueId scores = g.AddHidden(std::make_shared<ScaleOp>(2), {g.Input("x", shape, -2, 2)})[0];
            const ValueId labels = LabelsFor(g, shape);
            const auto loss = g.AddHidden(std::make_shared<SoftmaxCrossEntropyOp>(), {scores, labels});
            const ValueId correct = g.AddHidden(std::make_shared<CountCorrectOp>(k), {scores, labels})[0];
            const auto rows = static_cast<double>(shape.elements() / shape[-1]);
            g.AddHidden(
                std::make_shared<AccumulateOp>(std::vector<double>{rows, 1, rows}),
                {g.Meter("meter", 3), loss[0], correct, g.graph().AddConstant(1, DType::kFloat64, Shape())});
            g.Add(std::make_shared<SoftmaxCrossEntropyGradOp>(),
                  {loss[1], labels, g.graph().AddConstant(1, g.dtype(), Shape())});
            if (shared) g.Add(std::make_shared<ScaleOp>(3), {scores});
          }};
}

// The scores are a product's output, in the product's type.
OpCase AfterProduct(Shape shape) {
  return {absl::StrCat("losses of a product ", shape.ToString()), [=](CaseGraph& g) {
            const ValueId scores =
                g.AddHidden(std::make_shared<LinearOp>(),
                            {g.Input("x", {shape[0], 6}, -2, 2), g.Variable("weight", {shape[1], 6})})[0];
            const ValueId labels = LabelsFor(g, shape);
            const ValueId one = g.graph().AddConstant(1, g.dtype(), Shape());
            const auto loss = g.Add(std::make_shared<SoftmaxCrossEntropyOp>(), {scores, labels});
            g.Add(std::make_shared<SoftmaxCrossEntropyGradOp>(), {loss[1], labels, one});
            const ClassLossSettings smoothed = {.label_smoothing = 0.1};
            g.Add(std::make_shared<ClassLossOp>(smoothed), {scores, labels});
            g.Add(std::make_shared<ClassLossGradOp>(smoothed), {scores, labels, one});
            const ValueId y = g.Input("y", shape);
            g.Add(std::make_shared<ValueLossOp>(ValueLossSettings()), {scores, y});
            g.Add(std::make_shared<ValueLossGradOp>(ValueLossSettings()), {scores, y, one});
            g.Add(std::make_shared<CosineEmbeddingOp>(0, false), {scores, y});
            g.Add(std::make_shared<CosineEmbeddingGradOp>(0, false), {scores, y, one});
          }};
}

OpCase Ranks() {
  return {"count_correct among the first 3, of equal scores, of mixed classes", [](CaseGraph& g) {
            const ValueId scores = g.Input("scores", {33, 7});
            const ValueId labels = g.Labels("labels", 33, 7);
            g.Add(std::make_shared<CountCorrectOp>(3), {scores, labels});
            g.Add(std::make_shared<CountCorrectOp>(7), {scores, labels});
            const ValueId equal = g.graph().AddConstant(0.5, g.dtype(), {33, 7});
            g.Add(std::make_shared<CountCorrectOp>(3), {equal, labels});
            g.Add(std::make_shared<CountCorrectOp>(2), {scores, g.Input("shares", {33, 7}, 0, 1)});
          }};
}

}  // namespace

std::vector<OpCase> LossCases() {
  using ClassMode = ClassLossSettings::Mode;
  using ValueMode = ValueLossSettings::Mode;
  using Reduction = ValueLossSettings::Reduction;
  const std::vector<double> weights = {0.5, 2, 0, 1.25, 3};
  return {
      Classes("plain", {6, 5}, {}),
      Classes("smoothed", {33, 5}, {.label_smoothing = 0.1}),
      Classes("weighted", {6, 5}, {.weights = weights}),
      Classes("weighted, smoothed, ignoring, of tokens", {3, 7, 5},
              {.label_smoothing = 0.2, .weights = weights, .ignore_index = 3}),
      Classes("ignoring all", {2, 1}, {.ignore_index = 0}),
      Classes("mixed, weighted, smoothed", {7, 5}, {.label_smoothing = 0.1, .weights = weights}, true),
      Classes("summed", {6, 5}, {.weights = weights, .sum = true}),
      Classes("log_likelihood", {6, 5}, {.mode = ClassMode::kLogLikelihood}),
      Classes("log_likelihood, weighted, ignoring", {17, 5},
              {.mode = ClassMode::kLogLikelihood, .weights = weights, .ignore_index = 1}),
      Classes("of many classes", {3, 1300}, {.label_smoothing = 0.1}),
      Classes("of many rows", {600, 70}, {.ignore_index = 3}),
      Classes("hinge", {6, 5}, {.mode = ClassMode::kHinge}),
      Classes("hinge, squared, weighted", {33, 5},
              {.mode = ClassMode::kHinge, .weights = weights, .p = 2, .margin = 0.7}),
      Values("squared", {6, 5}, {}),
      Values("squared, of many", {70, 130}, {}),
      Values("squared, of more", {170, 301}, {.weights = weights}),
      Values("absolute", {17}, {.mode = ValueMode::kAbsolute}),
      Values("huber", {6, 5}, {.mode = ValueMode::kHuber, .width = 0.8}),
      Values("smooth_l1", {2, 3, 5}, {.mode = ValueMode::kSmoothL1, .width = 1.5}),
      Values("smooth_l1 of width 0", {7}, {.mode = ValueMode::kSmoothL1, .width = 0}),
      Values("logistic", {6, 5}, {.mode = ValueMode::kLogistic}, 0),
      Values("logistic, weighted", {6, 5},
             {.mode = ValueMode::kLogistic, .positive_weights = {1, 2, 3, 4, 5}, .weights = weights}, 0),
      Values("kl", {6, 5}, {.mode = ValueMode::kKl, .reduction = Reduction::kBatchMean}, 0),
      Values("kl of logarithms", {6, 5}, {.mode = ValueMode::kKlOfLogs, .reduction = Reduction::kSum}),
      Sides(),
      Directions("pairs", true, 0.1, false),
      Directions("pairs, summed", true, -0.5, true),
      Directions("x and y", false, 0, false),
      MeteredStep({37, 10}, 1, false),
      MeteredStep({37, 10}, 3, true),
      MeteredStep({2100, 10}, 1, false),
      MeteredStep({5, 9, 1300}, 5, false),
      MeteredStep({600, 70}, 1, true),
      AfterProduct({9, 11}),
      Tokens({2, 5, 7}),
      Tokens({3, 17, 31}),
      Ranks(),
  };
}

}  // namespace tandem
