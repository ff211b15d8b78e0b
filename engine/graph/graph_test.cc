#include "engine/graph/graph.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/sgd.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(Graph, FindsValuesByName) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kUInt8, {3});
  const ValueId w = graph.AddVariable("w", VariableKind::kStatistic, DType::kFloat32, {2, 3});
  EXPECT_EQ(graph.FindInput("x"), x);
  EXPECT_EQ(graph.FindVariable("w"), w);
  EXPECT_EQ(graph.FindInput("w"), kNoValue);
  EXPECT_EQ(graph.FindVariable("x"), kNoValue);
  EXPECT_EQ(graph.value(w).variable_kind, VariableKind::kStatistic);
}

TEST(Graph, ShowsItselfOneLineANode) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {8, 3, 9, 7});
  const ValueId w = graph.AddVariable("w", VariableKind::kParameter, DType::kFloat32, {4, 3, 3, 3});
  const ValueId y = *graph.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{.stride = {2, 1}}), {x, w});
  const ValueId z = *graph.Add(std::make_shared<AddOp>(),
                               {y, graph.AddConstant(0.5, DType::kFloat32, graph.value(y).shape)});
  graph.MarkOutput(z);
  EXPECT_EQ(graph.ToString(),
            "input x:float32[8, 3, 9, 7]\n"
            "variable w:float32[4, 3, 3, 3]\n"
            "%2:float32[8, 4, 4, 5] = conv2d(x, w) stride=[2, 1] padding=[0, 0] dilation=[1, 1] groups=1\n"
            "%4:float32[8, 4, 4, 5] = add(%2, 0.5)\n"
            "output %4\n");
}

TEST(Graph, NamesTheOpAndBothShapesWhereTheyDoNotFit) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {8, 3});
  const ValueId w = graph.AddInput("w", DType::kFloat32, {5, 4});
  const absl::Status status = graph.Add(std::make_shared<LinearOp>(), {x, w}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "linear(float32[8, 3], float32[5, 4])")) << status;
  EXPECT_TRUE(graph.nodes().empty());
}

TEST(Graph, RefusesEmptyAndHugeTensors) {
  Graph graph;
  for (const Shape& shape :
       {Shape({0}), Shape({3, -1}), Shape({int64_t{1} << 41}), Shape({int64_t{1} << 62, int64_t{1} << 62})}) {
    const ValueId x = graph.AddConstant(0, DType::kFloat32, shape);
    EXPECT_EQ(graph.Add(std::make_shared<ReluOp>(), {x}).status().code(), absl::StatusCode::kInvalidArgument)
        << shape.ToString();
  }
  // The inputs are small enough, but the output is too large.
  const ValueId x = graph.AddConstant(0, DType::kFloat32, {int64_t{1} << 30, 1});
  const ValueId w = graph.AddConstant(0, DType::kFloat32, {int64_t{1} << 30, 1});
  EXPECT_EQ(graph.Add(std::make_shared<LinearOp>(), {x, w}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Graph, ChangesOnlyVariablesInPlace) {
  Graph graph;
  const ValueId scalar = graph.AddInput("scalar", DType::kFloat32, {});
  const ValueId input = graph.AddInput("input", DType::kFloat64, {1});
  const ValueId meter = graph.AddVariable("meter", VariableKind::kMeter, DType::kFloat64, {1});
  const auto op = std::make_shared<AccumulateOp>(std::vector<double>{1});
  EXPECT_EQ(graph.AddNode(op, {input, scalar}).status().code(), absl::StatusCode::kInvalidArgument);
  const auto outputs = graph.AddNode(op, {meter, scalar});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE(outputs->empty());
}

}  // namespace
}  // namespace tandem
