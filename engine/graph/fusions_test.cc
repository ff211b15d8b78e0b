#include "engine/graph/fusions.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

const FusableKinds kAll = {.before_relu = {"conv2d"},
                           .norms = {"batch_norm", "batch_norm_inference"},
                           .norm_grads = {"batch_norm_grad", "batch_norm_inference_grad"}};

// A graph over images [2, 3, 4, 4], built op by op.
class FusionsTest : public testing::Test {
 protected:
  ValueId Input(const std::string& name) { return graph_.AddInput(name, DType::kFloat32, {2, 3, 4, 4}); }
  ValueId Vector(VariableKind kind) {
    return graph_.AddVariable("vector" + std::to_string(graph_.values().size()), kind, DType::kFloat32, {3});
  }
  ValueId Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
    absl::StatusOr<std::vector<ValueId>> outputs = graph_.AddNode(std::move(op), std::move(inputs));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs->at(0);
  }
  ValueId Conv(ValueId x) {
    const ValueId weight = graph_.AddVariable("weight" + std::to_string(graph_.values().size()),
                                              VariableKind::kParameter, DType::kFloat32, {3, 3, 1, 1});
    return Add(std::make_shared<Conv2dOp>(Conv2dGeometry()), {x, weight, Vector(VariableKind::kParameter)});
  }
  ValueId Norm(ValueId x) {
    return Add(std::make_shared<BatchNormOp>(0.1, 1e-5),
               {x, Vector(VariableKind::kParameter), Vector(VariableKind::kParameter),
                Vector(VariableKind::kStatistic), Vector(VariableKind::kStatistic)});
  }
  ValueId InferenceNorm(ValueId x) {
    return Add(std::make_shared<BatchNormInferenceOp>(1e-5),
               {x, Vector(VariableKind::kParameter), Vector(VariableKind::kParameter),
                Vector(VariableKind::kStatistic), Vector(VariableKind::kStatistic)});
  }
  ValueId Sum(ValueId a, ValueId b) { return Add(std::make_shared<AddOp>(), {a, b}); }
  ValueId Relu(ValueId x) { return Add(std::make_shared<ReluOp>(), {x}); }
  ValueId ReluGrad(ValueId y, ValueId dy) { return Add(std::make_shared<ReluGradOp>(), {y, dy}); }
  // Adds the gradient of the normalisation that computed `y`.
  ValueId NormGrad(ValueId y, ValueId dy) {
    const Node norm = Maker(y);
    return Add(std::make_shared<BatchNormGradOp>(),
               {norm.inputs[0], dy, norm.inputs[1], norm.outputs[1], norm.outputs[2]});
  }
  ValueId InferenceNormGrad(ValueId y, ValueId dy) {
    const Node norm = Maker(y);
    return Add(std::make_shared<BatchNormInferenceGradOp>(1e-5),
               {norm.inputs[0], dy, norm.inputs[1], norm.inputs[3], norm.inputs[4]});
  }
  const Node& Maker(ValueId id) const { return graph_.node(graph_.value(id).producer); }

  Graph graph_;
};

TEST_F(FusionsTest, AConvolutionTakesItsRelu) {
  const ValueId y = Conv(Input("x"));
  const ValueId relu = Relu(y);
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  const ForwardGroup* group = fusions.From(Maker(y));
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->first, &Maker(y));
  EXPECT_EQ(group->relu, &Maker(relu));
  EXPECT_EQ(group->add, nullptr);
  EXPECT_EQ(group->result(), relu);
  EXPECT_EQ(fusions.From(Maker(relu)), nullptr);
  EXPECT_EQ(Fusions(uses, {.norms = {"batch_norm"}}).From(Maker(y)), nullptr);
}

TEST_F(FusionsTest, AValueWithOtherReadersEndsNoGroup) {
  const ValueId read_twice = Conv(Input("a"));
  Relu(read_twice);
  Relu(read_twice);
  const ValueId output = Conv(Input("b"));
  Relu(output);
  graph_.MarkOutput(output);
  const ValueId doubled = Norm(Input("c"));
  Sum(doubled, doubled);
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  for (const ValueId y : {read_twice, output, doubled}) EXPECT_EQ(fusions.From(Maker(y)), nullptr) << y;
}

// A convolution adds nothing.
TEST_F(FusionsTest, OnlyNormalisationsTakeSums) {
  const ValueId y = Conv(Input("x"));
  const ValueId sum = Sum(y, Input("shortcut"));
  Relu(sum);
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  EXPECT_EQ(fusions.From(Maker(y)), nullptr);
  EXPECT_EQ(fusions.WithSum(Maker(sum)), nullptr);
}

TEST_F(FusionsTest, ANormalisationTakesItsSumAndRelu) {
  const ValueId shortcut = Input("shortcut");
  const ValueId y = Norm(Input("x"));
  const ValueId sum = Sum(shortcut, y);
  const ValueId relu = Relu(sum);
  const ValueId alone = InferenceNorm(relu);
  const ValueId relu_alone = Relu(alone);
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  const ForwardGroup* group = fusions.From(Maker(y));
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->add, &Maker(sum));
  EXPECT_EQ(group->addend, shortcut);
  EXPECT_EQ(group->relu, &Maker(relu));
  EXPECT_EQ(group->result(), relu);
  EXPECT_EQ(fusions.WithSum(Maker(sum)), group);
  const ForwardGroup* second = fusions.From(Maker(alone));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->add, nullptr);
  EXPECT_EQ(second->result(), relu_alone);
}

TEST_F(FusionsTest, ASumWithoutAReluIsAGroup) {
  const ValueId y = Norm(Input("x"));
  const ValueId sum = Sum(y, Input("shortcut"));
  graph_.MarkOutput(sum);
  Relu(sum);
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  const ForwardGroup* group = fusions.From(Maker(y));
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->relu, nullptr);
  EXPECT_EQ(group->result(), sum);
}

TEST_F(FusionsTest, OfTwoNormalisationsTheLaterAdds) {
  const ValueId earlier = Norm(Input("a"));
  const ValueId later = Norm(Input("b"));
  const ValueId sum = Sum(earlier, later);
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  EXPECT_EQ(fusions.From(Maker(earlier)), nullptr);
  const ForwardGroup* group = fusions.From(Maker(later));
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->addend, earlier);
  EXPECT_EQ(fusions.WithSum(Maker(sum)), group);
}

TEST_F(FusionsTest, AGradientKnowsTheNormalisationBeforeItsRelu) {
  for (const bool training : {true, false}) {
    const ValueId x = Input("x" + std::to_string(training));
    const ValueId dy = Input("dy" + std::to_string(training));
    const ValueId y = training ? Norm(x) : InferenceNorm(x);
    const ValueId relu_grad = ReluGrad(Relu(y), dy);
    const ValueId dx = training ? NormGrad(y, relu_grad) : InferenceNormGrad(y, relu_grad);
    const GraphUses uses(graph_);
    const Fusions fusions(uses, kAll);
    const BackwardGroup* group = fusions.Backward(Maker(relu_grad));
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(group->relu_grad, &Maker(relu_grad));
    EXPECT_EQ(group->norm_grad, &Maker(dx));
    EXPECT_EQ(group->norm, &Maker(y));
    EXPECT_EQ(group->add, nullptr);
    EXPECT_FALSE(group->shared);
    EXPECT_EQ(Fusions(uses, {.norm_grads = {"layer_norm_grad"}}).Backward(Maker(relu_grad)), nullptr);
  }
}

// The end of a residual block: the ReLU follows a sum, and two gradients meet.
TEST_F(FusionsTest, AGradientTakesTheSumBeforeIt) {
  const ValueId y = Norm(Input("x"));
  const ValueId relu = Relu(Sum(y, Input("shortcut")));
  const ValueId sum = Sum(Input("dy1"), Input("dy2"));
  const ValueId relu_grad = ReluGrad(relu, sum);
  NormGrad(y, relu_grad);
  graph_.MarkOutput(relu_grad);  // The gradient of the shortcut.
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  const BackwardGroup* group = fusions.Backward(Maker(relu_grad));
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->add, &Maker(sum));
  EXPECT_TRUE(fusions.SumsBackward(Maker(sum)));
  EXPECT_EQ(group->norm, nullptr);
  EXPECT_TRUE(group->shared);
}

TEST_F(FusionsTest, ASumWithAnotherReaderStaysAlone) {
  const ValueId y = Norm(Input("x"));
  const ValueId sum = Sum(Input("dy1"), Input("dy2"));
  const ValueId relu_grad = ReluGrad(Relu(y), sum);
  NormGrad(y, relu_grad);
  graph_.MarkOutput(sum);
  // Nobody normalises this gradient.
  const ValueId other = ReluGrad(Relu(Input("z")), Input("dz"));
  const GraphUses uses(graph_);
  const Fusions fusions(uses, kAll);
  ASSERT_NE(fusions.Backward(Maker(relu_grad)), nullptr);
  EXPECT_EQ(fusions.Backward(Maker(relu_grad))->add, nullptr);
  EXPECT_FALSE(fusions.SumsBackward(Maker(sum)));
  EXPECT_EQ(fusions.Backward(Maker(other)), nullptr);
}

}  // namespace
}  // namespace tandem
