#include "engine/graph/graph_uses.h"

#include <memory>
#include <vector>

#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/sgd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

TEST(GraphUsesTest, ListsEachReaderOnce) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {4});
  const ValueId doubled = *graph.Add(std::make_shared<AddOp>(), {x, x});
  const ValueId relu = *graph.Add(std::make_shared<ReluOp>(), {doubled});
  const ValueId again = *graph.Add(std::make_shared<AddOp>(), {x, relu});
  graph.MarkOutput(again);
  const GraphUses uses(graph);
  EXPECT_THAT(uses.readers(x), ElementsAre(0, 2));
  EXPECT_TRUE(uses.readers(again).empty());
  EXPECT_TRUE(uses.IsOutput(again));
  EXPECT_FALSE(uses.IsOutput(relu));
  EXPECT_EQ(uses.MakerOf(relu, "relu"), &graph.node(1));
  EXPECT_EQ(uses.MakerOf(relu, "add"), nullptr);
  EXPECT_EQ(uses.MakerOf(x, "add"), nullptr);
}

TEST(GraphUsesTest, AnOnlyReaderReadsOnceAndBeforeNoHost) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {4});
  const ValueId once = *graph.Add(std::make_shared<ReluOp>(), {x});
  const ValueId twice = *graph.Add(std::make_shared<ReluOp>(), {once});
  const ValueId read_by_host = *graph.Add(std::make_shared<AddOp>(), {twice, twice});
  ASSERT_TRUE(graph.Add(std::make_shared<ReluOp>(), {read_by_host}).ok());
  graph.MarkOutput(read_by_host);
  const GraphUses uses(graph);
  EXPECT_EQ(uses.OnlyReader(once, "relu"), &graph.node(1));
  EXPECT_EQ(uses.OnlyReader(once, "add"), nullptr);
  EXPECT_EQ(uses.OnlyReader(twice, "add"), nullptr);
  EXPECT_EQ(uses.OnlyReader(read_by_host, "relu"), nullptr);
}

// A parameter with its gradient, which is clipped, reduced, and used by a step of SGD.
TEST(GraphUsesTest, FollowsAGradientToItsParameter) {
  Graph graph;
  const ValueId grad = graph.AddInput("grad", DType::kFloat32, {4});
  const ValueId other_grad = graph.AddInput("other_grad", DType::kFloat32, {4});
  const ValueId unused = graph.AddInput("unused", DType::kFloat32, {4});
  const ValueId rate = graph.AddInput("rate", DType::kFloat64, {});
  const ValueId step = graph.AddInput("step", DType::kInt64, {});
  const auto variable = [&](const char* name) {
    return graph.AddVariable(name, VariableKind::kParameter, DType::kFloat32, {4});
  };
  const ValueId parameter = variable("parameter");
  const ValueId other = variable("other");
  const std::vector<ValueId> clipped = *graph.AddNode(
      std::make_shared<ClipGradientsOp>(ClipGradientsOp::Mode::kByNorm, 1, 2), {other_grad, grad});
  const std::vector<ValueId> reduced =
      *graph.AddNode(std::make_shared<AllReduceOp>(1, 0, 2), {clipped[0], clipped[1]});
  const auto sgd = std::make_shared<SgdOp>(0, 0, false, 0);
  ASSERT_TRUE(graph.AddNode(sgd, {parameter, reduced[1], rate, step}).ok());
  ASSERT_TRUE(graph.AddNode(sgd, {other, reduced[0], rate, step}).ok());
  const GraphUses uses(graph);
  EXPECT_EQ(uses.ParameterOf(grad), parameter);
  EXPECT_EQ(uses.ParameterOf(other_grad), other);
  EXPECT_EQ(uses.ParameterOf(reduced[0]), other);
  EXPECT_EQ(uses.ParameterOf(unused), kNoValue);

  EXPECT_TRUE(uses.ChangesAfter(parameter, 1));
  EXPECT_FALSE(uses.ChangesAfter(parameter, 2));
  EXPECT_TRUE(uses.ChangesBetween(other, 2, 4));
  EXPECT_FALSE(uses.ChangesBetween(other, 0, 3));
  EXPECT_FALSE(uses.ChangesAfter(reduced[0], 1));
}

}  // namespace
}  // namespace tandem
