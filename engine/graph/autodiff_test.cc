#include "engine/graph/autodiff.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/sgd.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

std::vector<std::string> Kinds(const Graph& graph, size_t from) {
  std::vector<std::string> kinds;
  for (size_t i = from; i < graph.nodes().size(); ++i) kinds.emplace_back(graph.nodes()[i].op->kind());
  return kinds;
}

// A classifier with a single layer over `x`.
struct Classifier {
  explicit Classifier(Graph& graph) {
    x = graph.AddInput("x", DType::kFloat32, {8, 5});
    labels = graph.AddInput("labels", DType::kInt32, {8});
    weight = graph.AddVariable("weight", VariableKind::kParameter, DType::kFloat32, {3, 5});
    bias = graph.AddVariable("bias", VariableKind::kParameter, DType::kFloat32, {3});
    logits = *graph.Add(std::make_shared<LinearOp>(), {x, weight, bias});
    loss = (*graph.AddNode(std::make_shared<SoftmaxCrossEntropyOp>(), {logits, labels}))[0];
  }
  ValueId x, labels, weight, bias, logits, loss;
};

TEST(Autodiff, ComputesOnlyWhatLeadsToATarget) {
  Graph graph;
  const Classifier c(graph);
  // This node reads a parameter and is not differentiable, but the loss does not depend on it.
  ASSERT_TRUE(graph.Add(std::make_shared<CountCorrectOp>(), {c.logits, c.labels}).ok());
  const size_t forward = graph.nodes().size();
  const auto grads = AppendGradients(graph, c.loss, {c.weight, c.bias});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ(Kinds(graph, forward),
            (std::vector<std::string>{"softmax_cross_entropy_grad", "linear_grad_weight"}));
  EXPECT_EQ(graph.value((*grads)[0]).shape, Shape({3, 5}));
  EXPECT_EQ(graph.value((*grads)[1]).shape, Shape({3}));
}

TEST(Autodiff, GivesGradientsOfInputsToo) {
  Graph graph;
  const Classifier c(graph);
  const size_t forward = graph.nodes().size();
  const auto grads = AppendGradients(graph, c.loss, {c.x});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ(Kinds(graph, forward),
            (std::vector<std::string>{"softmax_cross_entropy_grad", "linear_grad_input"}));
  EXPECT_EQ(graph.value((*grads)[0]).shape, Shape({8, 5}));
}

TEST(Autodiff, GivesZeroWhereTheLossDoesNotDepend) {
  Graph graph;
  const Classifier c(graph);
  const ValueId other = graph.AddVariable("other", VariableKind::kParameter, DType::kFloat32, {7});
  const auto grads = AppendGradients(graph, c.loss, {other});
  ASSERT_TRUE(grads.ok()) << grads.status();
  const Value& zero = graph.value((*grads)[0]);
  EXPECT_EQ(zero.role, ValueRole::kConstant);
  EXPECT_EQ(zero.constant, 0);
  EXPECT_EQ(zero.shape, Shape({7}));
}

TEST(Autodiff, AddsGradientsOfSeveralReaders) {
  Graph graph;
  const ValueId x = graph.AddVariable("x", VariableKind::kParameter, DType::kFloat64, {});
  ValueId sum = *graph.Add(std::make_shared<ScaleOp>(2), {x});
  sum = *graph.Add(std::make_shared<AddOp>(), {sum, x});
  sum = *graph.Add(std::make_shared<AddOp>(), {sum, sum});
  const size_t forward = graph.nodes().size();
  const auto grads = AppendGradients(graph, sum, {x});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ(Kinds(graph, forward), (std::vector<std::string>{"add", "scale", "add"}));
}

TEST(Autodiff, GradientOfTheLossItselfIsOne) {
  Graph graph;
  const ValueId x = graph.AddVariable("x", VariableKind::kParameter, DType::kFloat64, {});
  const auto grads = AppendGradients(graph, x, {x});
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_EQ(graph.value((*grads)[0]).constant, 1);
}

TEST(Autodiff, GradientsBeginWithTheScaleWhereThereIsOne) {
  Graph graph;
  const Classifier c(graph);
  const ValueId scale = graph.AddVariable("scale", VariableKind::kOptimizerState, DType::kFloat32, {});
  const size_t forward = graph.nodes().size();
  ASSERT_TRUE(AppendGradients(graph, c.loss, {c.weight}, nullptr, scale).ok());
  EXPECT_EQ(graph.nodes()[forward].inputs.back(), scale);
  const ValueId wide = graph.AddVariable("wide", VariableKind::kOptimizerState, DType::kFloat64, {});
  EXPECT_EQ(AppendGradients(graph, c.loss, {c.weight}, nullptr, wide).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Autodiff, NamesTheOpThatIsNotDifferentiable) {
  Graph graph;
  const ValueId x = graph.AddVariable("x", VariableKind::kParameter, DType::kFloat32, {1, 1});
  const ValueId y = *graph.Add(
      std::make_shared<NormalizeOp>(1, std::vector<double>{0}, std::vector<double>{1}, DType::kFloat32), {x});
  const ValueId loss = *graph.Add(std::make_shared<ReshapeOp>(Shape()), {y});
  const absl::Status status = AppendGradients(graph, loss, {x}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(status.message(), "normalize")) << status;
}

TEST(Autodiff, RefusesWhatHasNoGradient) {
  Graph graph;
  const Classifier c(graph);
  EXPECT_EQ(AppendGradients(graph, c.logits, {c.weight}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AppendGradients(graph, c.loss, {c.labels}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Autodiff, RefusesParametersThatAreAlreadyUpdated) {
  Graph graph;
  const Classifier c(graph);
  const auto grads = AppendGradients(graph, c.loss, {c.weight});
  ASSERT_TRUE(grads.ok()) << grads.status();
  const ValueId learning_rate = graph.AddInput("learning_rate", DType::kFloat64, {});
  const ValueId step = graph.AddInput("step", DType::kInt64, {});
  ASSERT_TRUE(
      graph.AddNode(std::make_shared<SgdOp>(0, 0, false, 0), {c.weight, (*grads)[0], learning_rate, step})
          .ok());
  EXPECT_EQ(AppendGradients(graph, c.loss, {c.weight}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tandem
