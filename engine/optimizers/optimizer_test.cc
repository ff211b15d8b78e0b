#include "engine/optimizers/optimizer.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/sgd.h"
#include "engine/optimizers/parameter_groups.h"
#include "google/protobuf/text_format.h"
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
  ASSERT_TRUE(AddUpdates(optimizer, {parameter}, {gradient}, rate, step, graph).ok());
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
  ASSERT_TRUE(AddUpdates(optimizer, {parameter}, {graph.AddInput("g", DType::kFloat32, Shape({3}))},
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

v1::Optimizer Parse(const std::string& text) {
  v1::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &optimizer)) << text;
  FillOptimizerDefaults(&optimizer);
  return optimizer;
}

// What a message's only fault is.
std::string FaultOf(const std::string& text) {
  const std::vector<FieldViolation> violations = GetFieldViolations(CheckOptimizer(Parse(text)));
  return violations.size() == 1 ? violations[0].field : std::to_string(violations.size());
}

TEST(OptimizerTest, DefaultsArePyTorchs) {
  for (const char* kind : {"adam {}", "adamw {}", "nadam {}", "adamax {}", "rmsprop {}", "adagrad {}",
                           "adadelta {}", "lion {}", "lamb {}"}) {
    EXPECT_TRUE(CheckOptimizer(Parse(kind)).ok()) << kind << CheckOptimizer(Parse(kind));
    EXPECT_GT(LearningRateOf(Parse(kind)), 0) << kind;
  }
  EXPECT_EQ(Parse("adamw {}").adamw().weight_decay(), 0.01);
  EXPECT_EQ(Parse("adamw { weight_decay: 0 }").adamw().weight_decay(), 0);
  EXPECT_EQ(Parse("nadam {}").nadam().momentum_decay(), 0.004);
  EXPECT_EQ(Parse("adadelta {}").adadelta().learning_rate(), 1);
  EXPECT_EQ(Parse("lion {}").lion().beta2(), 0.99);
}

TEST(OptimizerTest, NamesEveryKindsFields) {
  EXPECT_EQ(FaultOf("adam { beta1: 1 }"), "adam.beta1");
  EXPECT_EQ(FaultOf("adamw { epsilon: 0 }"), "adamw.epsilon");
  EXPECT_EQ(FaultOf("nadam { momentum_decay: -1 }"), "nadam.momentum_decay");
  EXPECT_EQ(FaultOf("adamax { learning_rate: -1 }"), "adamax.learning_rate");
  EXPECT_EQ(FaultOf("rmsprop { alpha: nan }"), "rmsprop.alpha");
  EXPECT_EQ(FaultOf("rmsprop { momentum: 1 }"), "rmsprop.momentum");
  EXPECT_EQ(FaultOf("adagrad { initial_accumulator_value: -1 }"), "adagrad.initial_accumulator_value");
  EXPECT_EQ(FaultOf("adadelta { rho: 2 }"), "adadelta.rho");
  EXPECT_EQ(FaultOf("lion { weight_decay: inf }"), "lion.weight_decay");
  EXPECT_EQ(FaultOf("lamb { beta2: -0.1 }"), "lamb.beta2");
  EXPECT_EQ(FaultOf("adam {} clip {}"), "clip");
  EXPECT_EQ(FaultOf("adam {} clip { norm: 0 }"), "clip.norm");
  EXPECT_EQ(FaultOf("adam {} clip { value: -1 }"), "clip.value");
  EXPECT_EQ(FaultOf("adam {} groups { weight_decay: 0 }"), "groups[0]");
  EXPECT_EQ(FaultOf("adam {} groups { biases_and_norms: true }"), "groups[0].weight_decay");
  EXPECT_EQ(FaultOf("adam {} groups { names: 'a' weight_decay: -1 }"), "groups[0].weight_decay");
}

TEST(OptimizerTest, GroupsHaveAWeightDecayOfTheirOwn) {
  const v1::Optimizer optimizer = Parse(R"(
      adamw { weight_decay: 0.5 } clip { norm: 1 }
      groups { biases_and_norms: true weight_decay: 0 }
      groups { names: ["head.*"] weight_decay: 0.25 })");
  Graph graph;
  std::vector<ValueId> parameters;
  std::vector<ValueId> gradients;
  for (const auto& [name, shape] :
       {std::pair("body.weight", Shape({2, 3})), std::pair("body.bias", Shape({2})),
        std::pair("head.weight", Shape({4, 2})), std::pair("head.bias", Shape({4}))}) {
    parameters.push_back(graph.AddVariable(name, VariableKind::kParameter, DType::kFloat32, shape));
    gradients.push_back(graph.AddInput(absl::StrCat("grad ", name), DType::kFloat32, shape));
  }
  const ValueId rate = graph.AddInput("learning_rate", DType::kFloat64, Shape());
  const ValueId step = graph.AddInput("step", DType::kInt64, Shape());
  ASSERT_TRUE(AddUpdates(optimizer, parameters, gradients, rate, step, graph).ok());
  ASSERT_EQ(graph.nodes().size(), 5);
  EXPECT_EQ(graph.node(0).op->kind(), "clip_gradients");
  std::vector<double> decays;
  for (int i = 1; i < 5; ++i) {
    decays.push_back(static_cast<const AdamOp&>(*graph.node(i).op).settings.weight_decay);
    EXPECT_EQ(graph.node(i).inputs[1], graph.node(0).outputs[i - 1]);
  }
  EXPECT_EQ(decays, std::vector<double>({0.5, 0, 0.25, 0}));
  EXPECT_NE(graph.FindVariable("first_moment/body.weight"), kNoValue);
  EXPECT_NE(graph.FindVariable("second_moment/head.bias"), kNoValue);

  v1::Optimizer wrong = optimizer;
  wrong.mutable_groups(1)->add_names("tail.*");
  const absl::Status status = AddUpdates(wrong, parameters, gradients, rate, step, graph);
  ASSERT_EQ(GetFieldViolations(status).size(), 1) << status;
  EXPECT_EQ(GetFieldViolations(status)[0].field, "groups[1].names[1]");
}

TEST(OptimizerTest, NamesMatchPatterns) {
  EXPECT_TRUE(MatchesName("dense_1.weight", "dense_1.weight"));
  EXPECT_TRUE(MatchesName("*.bias", "dense_1.bias"));
  EXPECT_TRUE(MatchesName("dense_?.*", "dense_1.bias"));
  EXPECT_TRUE(MatchesName("*a*ab", "xaaab"));
  EXPECT_TRUE(MatchesName("*", ""));
  EXPECT_FALSE(MatchesName("*.bias", "dense_1.biased"));
  EXPECT_FALSE(MatchesName("dense_?", "dense_"));
  EXPECT_FALSE(MatchesName("", "x"));
}

}  // namespace
}  // namespace tandem
