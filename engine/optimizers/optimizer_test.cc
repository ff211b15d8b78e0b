#include "engine/optimizers/optimizer.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/sgd.h"
#include "engine/optimizers/parameter_groups.h"
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
  v1::Optimizer optimizer = FromText<v1::Optimizer>(text);
  FillOptimizerDefaults(&optimizer);
  return optimizer;
}

std::string FaultOf(const std::string& text) { return FieldAtFault(CheckOptimizer(Parse(text))); }

TEST(OptimizerTest, DefaultsArePyTorchs) {
  for (const char* kind : {"adam {}", "adamw {}", "nadam {}", "adamax {}", "rmsprop {}", "adagrad {}",
                           "adadelta {}", "lion {}", "lamb {}", "muon {}"}) {
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
  EXPECT_EQ(FaultOf("adam { epsilon: 1e-60 }"), "adam.epsilon");
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
  EXPECT_EQ(FaultOf("adam {} clip { parameter_norm: nan }"), "clip.parameter_norm");
  EXPECT_EQ(FaultOf("adam {} groups { weight_decay: 0 }"), "groups[0]");
  EXPECT_EQ(FaultOf("adam {} groups { biases_and_norms: true }"), "groups[0]");
  EXPECT_EQ(FaultOf("adam {} groups { names: 'a' learning_rate_factor: nan }"),
            "groups[0].learning_rate_factor");
  EXPECT_EQ(FaultOf("muon { ns_steps: 100 }"), "muon.ns_steps");
  EXPECT_EQ(FaultOf("muon { ns_coefficients: [1, 2] }"), "muon.ns_coefficients");
  EXPECT_EQ(FaultOf("muon { momentum: 1 }"), "muon.momentum");
  EXPECT_EQ(FaultOf("muon { adamw { beta1: 1 } }"), "muon.adamw.beta1");
  EXPECT_EQ(FaultOf("adam {} groups { names: 'a' weight_decay: -1 }"), "groups[0].weight_decay");
}

TEST(OptimizerTest, RefusesMoreNamesThanAreLookedThrough) {
  std::string text = "adam {} groups { frozen: true names: ['a'";
  for (int i = 0; i < 1024; ++i) text += ", 'a'";
  EXPECT_EQ(FaultOf(text + "] }"), "groups");
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

// A graph with named parameters of some shapes, and their updates.
struct Updated {
  explicit Updated(const v1::Optimizer& optimizer,
                   const std::vector<std::pair<std::string, Shape>>& parameters) {
    std::vector<ValueId> values;
    std::vector<ValueId> gradients;
    for (const auto& [name, shape] : parameters) {
      values.push_back(graph.AddVariable(name, VariableKind::kParameter, DType::kFloat32, shape));
      const bool frozen = IsFrozen(optimizer, graph.value(values.back()));
      gradients.push_back(frozen ? kNoValue : graph.AddInput("grad " + name, DType::kFloat32, shape));
    }
    const ValueId rate = graph.AddInput("learning_rate", DType::kFloat64, Shape());
    const ValueId step = graph.AddInput("step", DType::kInt64, Shape());
    status = AddUpdates(optimizer, values, gradients, rate, step, graph);
  }
  // Returns the node that changes a parameter, or null.
  const Node* UpdateOf(const std::string& name) const {
    for (const Node& node : graph.nodes()) {
      if (node.inputs[0] == graph.FindVariable(name)) return &node;
    }
    return nullptr;
  }

  Graph graph;
  absl::Status status;
};

TEST(OptimizerTest, GroupsHaveALearningRateOfTheirOwnOrStay) {
  const Updated updated(Parse(R"(
      sgd { learning_rate: 1 } clip { value: 1 }
      groups { names: "body.*" learning_rate_factor: 0.1 }
      groups { names: "stem.*" frozen: true })"),
                        {{"stem.weight", Shape({2, 3})},
                         {"body.weight", Shape({2, 3})},
                         {"body.bias", Shape({2})},
                         {"head.bias", Shape({4})}});
  ASSERT_TRUE(updated.status.ok()) << updated.status;
  EXPECT_EQ(updated.UpdateOf("stem.weight"), nullptr);
  const ValueId rate = updated.graph.FindInput("learning_rate");
  EXPECT_EQ(updated.UpdateOf("head.bias")->inputs[2], rate);
  const ValueId body_rate = updated.UpdateOf("body.weight")->inputs[2];
  EXPECT_EQ(updated.UpdateOf("body.bias")->inputs[2], body_rate);
  const Node& scale = updated.graph.node(updated.graph.value(body_rate).producer);
  EXPECT_EQ(static_cast<const ScaleOp&>(*scale.op).factor, 0.1);
  EXPECT_EQ(scale.inputs[0], rate);
}

TEST(OptimizerTest, ClipsTheGradientOfEachParameterAlone) {
  const Updated updated(Parse("sgd { learning_rate: 1 } clip { parameter_norm: 0.5 }"),
                        {{"weight", Shape({2, 3})}, {"bias", Shape({2})}});
  ASSERT_TRUE(updated.status.ok()) << updated.status;
  for (const std::string name : {"weight", "bias"}) {
    const Node& clip = updated.graph.node(updated.graph.value(updated.UpdateOf(name)->inputs[1]).producer);
    const auto* const op = dynamic_cast<const ClipGradientsOp*>(clip.op.get());
    ASSERT_NE(op, nullptr);
    EXPECT_EQ(op->mode, ClipGradientsOp::Mode::kByNorm);
    EXPECT_EQ(op->limit, 0.5);
    EXPECT_EQ(clip.inputs, std::vector<ValueId>({updated.graph.FindInput("grad " + name)}));
  }
}

TEST(OptimizerTest, MuonLeavesToAdamWWhatIsNoMatrix) {
  const v1::Optimizer optimizer = Parse(R"(
      muon { learning_rate: 0.02 adamw { learning_rate: 0.005 } adamw_names: "head.*" }
      groups { biases_and_norms: true weight_decay: 0 })");
  const Updated updated(optimizer, {{"body.weight", Shape({2, 3})},
                                    {"body.bias", Shape({2})},
                                    {"conv.weight", Shape({2, 3, 3, 3})},
                                    {"head.weight", Shape({4, 2})}});
  ASSERT_TRUE(updated.status.ok()) << updated.status;
  EXPECT_EQ(updated.UpdateOf("body.weight")->op->kind(), "muon");
  EXPECT_EQ(updated.UpdateOf("body.weight")->inputs[2], updated.graph.FindInput("learning_rate"));
  EXPECT_NE(updated.graph.FindVariable("momentum/body.weight"), kNoValue);
  for (const char* name : {"body.bias", "conv.weight", "head.weight"}) {
    const Node* update = updated.UpdateOf(name);
    ASSERT_EQ(update->op->kind(), "adam") << name;
    const auto& adam = static_cast<const AdamOp&>(*update->op);
    EXPECT_TRUE(adam.settings.decoupled);
    EXPECT_EQ(adam.settings.weight_decay, std::string(name) == "body.bias" ? 0 : 0.01);
    const Node& scale = updated.graph.node(updated.graph.value(update->inputs[2]).producer);
    EXPECT_EQ(static_cast<const ScaleOp&>(*scale.op).factor, 0.25);
  }
  const Updated wrong(Parse("muon { adamw_names: 'tail' }"), {{"body.weight", Shape({2, 3})}});
  ASSERT_EQ(GetFieldViolations(wrong.status).size(), 1) << wrong.status;
  EXPECT_EQ(GetFieldViolations(wrong.status)[0].field, "muon.adamw_names[0]");
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
