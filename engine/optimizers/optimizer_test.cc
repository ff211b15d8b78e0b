#include "engine/optimizers/optimizer.h"

#include <limits>

#include "engine/base/field_violations.h"
#include "engine/graph/ops/sgd.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(OptimizerTest, BuildsTheOpWithItsState) {
  v1::Optimizer optimizer;
  optimizer.mutable_nesterov()->set_learning_rate(0.1);
  optimizer.mutable_nesterov()->set_weight_decay(0.5);
  FillOptimizerDefaults(&optimizer);
  ASSERT_TRUE(CheckOptimizer(optimizer).ok());
  EXPECT_EQ(LearningRateOf(optimizer), 0.1);
  Graph graph;
  const ValueId parameter = graph.AddVariable("w", VariableKind::kParameter, DType::kFloat32, Shape({3}));
  const ValueId gradient = graph.AddInput("g", DType::kFloat32, Shape({3}));
  const ValueId rate = graph.AddInput("learning_rate", DType::kFloat64, Shape());
  const ValueId step = graph.AddInput("step", DType::kInt64, Shape());
  ASSERT_TRUE(AddUpdate(optimizer, parameter, gradient, rate, step, graph).ok());
  const ValueId state = graph.FindVariable("momentum/w");
  ASSERT_NE(state, kNoValue);
  EXPECT_EQ(graph.value(state).variable_kind, VariableKind::kOptimizerState);
  const auto& op = static_cast<const SgdOp&>(*graph.node(0).op);
  EXPECT_EQ(op.momentum, 0.9);
  EXPECT_EQ(op.weight_decay, 0.5);
  EXPECT_TRUE(op.nesterov);
}

TEST(OptimizerTest, WithoutMomentumThereIsNoState) {
  v1::Optimizer optimizer;
  optimizer.mutable_momentum()->set_learning_rate(0.1);
  optimizer.mutable_momentum()->set_momentum(0);
  FillOptimizerDefaults(&optimizer);
  ASSERT_TRUE(CheckOptimizer(optimizer).ok());
  Graph graph;
  const ValueId parameter = graph.AddVariable("w", VariableKind::kParameter, DType::kFloat32, Shape({3}));
  ASSERT_TRUE(AddUpdate(optimizer, parameter, graph.AddInput("g", DType::kFloat32, Shape({3})),
                        graph.AddInput("r", DType::kFloat64, Shape()),
                        graph.AddInput("s", DType::kInt64, Shape()), graph)
                  .ok());
  EXPECT_EQ(graph.variables().size(), 1);
}

TEST(OptimizerTest, NamesTheFieldsAtFault) {
  v1::Optimizer optimizer;
  EXPECT_EQ(GetFieldViolations(CheckOptimizer(optimizer)).size(), 1);
  optimizer.mutable_sgd();
  EXPECT_EQ(GetFieldViolations(CheckOptimizer(optimizer))[0].field, "sgd.learning_rate");
  optimizer.mutable_sgd()->set_learning_rate(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(GetFieldViolations(CheckOptimizer(optimizer))[0].field, "sgd.learning_rate");
  optimizer.mutable_momentum()->set_learning_rate(1);
  optimizer.mutable_momentum()->set_momentum(1);
  optimizer.mutable_momentum()->set_dampening(-1);
  optimizer.mutable_momentum()->set_weight_decay(-1);
  EXPECT_EQ(GetFieldViolations(CheckOptimizer(optimizer)).size(), 3);
  optimizer.mutable_nesterov()->set_learning_rate(1);
  optimizer.mutable_nesterov()->set_momentum(0);
  EXPECT_EQ(GetFieldViolations(CheckOptimizer(optimizer))[0].field, "nesterov.momentum");
}

}  // namespace
}  // namespace tandem
