// Categories of a table as vectors: the numbers, the gradients, the names and the refusals.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backend/op_cases.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/reshape.h"
#include "engine/layers/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

v1::Model ModelOf(const std::string& text) {
  v1::Model model = FromText<v1::Model>(text);
  FillModelDefaults(&model);
  return model;
}

// A number, a city of 4 inputs, a number, and a size of 3 inputs.
constexpr char kTable[] = R"(
    input { shape: 9 }
    layers {
      embed_categories {
        columns { name: "city" first_input: 1 inputs: 4 dimension: 2 }
        columns { name: "size of it" first_input: 6 inputs: 3 dimension: 1 }
      }
    })";

// Two rows of kTable. The second row has no city.
Tensor Rows() {
  return Tensor::Of<double>({2, 9}, {0.5, 0, 0, 1, 0, -1, 1, 0, 0,  //
                                     1.5, 0, 0, 0, 0, 2, 0, 0, 1});
}

// Adds the network of `model` over Rows().
Network Build(const v1::Model& model, CaseGraph& g) {
  const ValueId input = g.graph().AddInput("x", DType::kFloat64, Shape({2, 9}));
  g.inputs().push_back(Rows());
  absl::StatusOr<Network> network = BuildModel(model, input, g.dtype(), /*training=*/true, g.graph());
  EXPECT_TRUE(network.ok()) << network.status();
  return *std::move(network);
}

std::vector<double> Numbers(const Tensor& tensor) {
  return {tensor.data<double>().begin(), tensor.data<double>().end()};
}

TEST(EmbedCategoriesTest, ACategoryBecomesItsColumnOfTheWeight) {
  const std::unique_ptr<Device> device = CreateReferenceDevice();
  CaseGraph g(DType::kFloat64);
  const Network network = Build(ModelOf(kTable), g);
  g.variables().emplace("embed_categories_1.city.weight",
                        Tensor::Of<double>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  g.variables().emplace("embed_categories_1.size_of_it.weight", Tensor::Of<double>({1, 3}, {9, 10, 11}));
  g.graph().MarkOutput(network.output);
  const absl::StatusOr<RunResult> result = RunCaseOn(*device, g);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].shape(), Shape({2, 5}));
  EXPECT_THAT(Numbers(result->outputs[0]), ElementsAre(0.5, 3, 7, -1, 9, 1.5, 0, 0, 2, 11));
}

TEST(EmbedCategoriesTest, GradientsAreThoseOfCentralDifferences) {
  const std::unique_ptr<Device> device = CreateReferenceDevice();
  CaseGraph forward(DType::kFloat64);
  const Network network = Build(
      ModelOf(absl::StrCat(kTable, " layers { dense { units: 3 activation: ACTIVATION_TANH } }")), forward);
  for (const Parameter& parameter : network.parameters) {
    Tensor value(DType::kFloat64, parameter.shape);
    for (int64_t i = 0; i < value.elements(); ++i) value.data<double>()[i] = std::sin(1.0 + 0.7 * i);
    forward.variables().emplace(parameter.name, std::move(value));
  }
  const ValueId row = forward.AddHidden(std::make_shared<ReshapeOp>(Shape({1, 6})), {network.output})[0];
  const ValueId weight = forward.Variable("projection", {1, 6}, -1, 1, VariableKind::kStatistic);
  const ValueId sum = forward.AddHidden(std::make_shared<LinearOp>(), {row, weight})[0];
  const ValueId loss = forward.AddHidden(std::make_shared<ReshapeOp>(Shape()), {sum})[0];
  forward.graph().MarkOutput(loss);

  CaseGraph backward = forward;
  std::vector<ValueId> targets;
  for (const Parameter& parameter : network.parameters) targets.push_back(parameter.value);
  const auto grads = AppendGradients(backward.graph(), loss, targets);
  ASSERT_TRUE(grads.ok()) << grads.status();
  for (const ValueId grad : *grads) backward.graph().MarkOutput(grad);
  const absl::StatusOr<RunResult> result = RunCaseOn(*device, backward);
  ASSERT_TRUE(result.ok()) << result.status();

  const auto loss_with = [&](const std::string& name, int64_t i, double change) {
    CaseGraph changed = forward;
    changed.variables().at(name).data<double>()[i] += change;
    const absl::StatusOr<RunResult> run = RunCaseOn(*device, changed);
    EXPECT_TRUE(run.ok()) << run.status();
    return run->outputs[0].data<double>()[0];
  };
  constexpr double kStep = 1e-5;
  for (size_t p = 0; p < network.parameters.size(); ++p) {
    const Parameter& parameter = network.parameters[p];
    const Tensor& grad = result->outputs[1 + p];
    ASSERT_EQ(grad.shape(), parameter.shape);
    for (int64_t i = 0; i < grad.elements(); ++i) {
      const double difference =
          (loss_with(parameter.name, i, kStep) - loss_with(parameter.name, i, -kStep)) / (2 * kStep);
      EXPECT_NEAR(grad.data<double>()[i], difference, 1e-8) << parameter.name << " " << i;
    }
  }
}

// Returns the parameters' names and shapes.
std::vector<std::string> ParametersOf(const std::string& text, int64_t features) {
  Graph graph;
  const ValueId input = graph.AddInput("x", DType::kFloat32, Shape({2, features}));
  const absl::StatusOr<Network> network =
      BuildModel(ModelOf(text), input, DType::kFloat32, /*training=*/true, graph);
  EXPECT_TRUE(network.ok()) << network.status();
  std::vector<std::string> parameters;
  for (const Parameter& parameter : network->parameters) {
    parameters.push_back(absl::StrCat(parameter.name, " ", parameter.shape.ToString()));
  }
  return parameters;
}

TEST(EmbedCategoriesTest, ParametersHaveTheNamesOfTheColumns) {
  const std::string text = R"(
    input { shape: 8 }
    layers {
      name: "e"
      embed_categories {
        columns { name: "a b" first_input: 0 inputs: 2 dimension: 1 }
        columns { name: "a_b" first_input: 2 inputs: 2 dimension: 3 }
        columns { name: "" first_input: 4 inputs: 2 dimension: 1 }
        columns { name: "0" first_input: 6 inputs: 2 dimension: 1 }
      }
    })";
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(ModelOf(text));
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ(shapes->back(), Shape({6}));
  EXPECT_THAT(ParametersOf(text, 8), ElementsAre("e.a_b.weight [1, 2]", "e.a_b_2.weight [3, 2]",
                                                 "e._.weight [1, 2]", "e.0.weight [1, 2]"));
  // A column may be the whole sample.
  EXPECT_THAT(ParametersOf("input { shape: 3 } layers { embed_categories { columns { name: 'c' inputs: 3 "
                           "dimension: 2 } } }",
                           3),
              ElementsAre("embed_categories_1.c.weight [2, 3]"));
}

void ExpectViolation(const std::string& text, const std::string& field, const std::string& part) {
  SCOPED_TRACE(text);
  ExpectOneViolation(CheckModel(ModelOf(text)).status(), field, part);
}

TEST(EmbedCategoriesTest, RefusesOtherPlacesAndWrongColumns) {
  const std::string column = "columns { name: 'c' first_input: 1 inputs: 3 dimension: 2 } ";
  const std::string layer = absl::StrCat("embed_categories { ", column, "} ");
  ExpectViolation(absl::StrCat("input { shape: 9 } layers { dense { units: 9 } } layers { ", layer, "}"),
                  "layers[1].embed_categories", "must be the model's first layer");
  ExpectViolation(absl::StrCat("input { shape: 9 } layers { repeat { count: 2 layers { ", layer, "} } }"),
                  "layers[0].repeat.layers[0].embed_categories", "must be the model's first layer");
  ExpectViolation(absl::StrCat("input { shape: [9, 9] } layers { ", layer, "}"), "layers[0].embed_categories",
                  "takes the inputs of a table's row [features], not [9, 9]");
  ExpectViolation(absl::StrCat("input { shape: 3 } layers { ", layer, "}"),
                  "layers[0].embed_categories.columns", "3 inputs from input 1, but a sample has 3 inputs");
  ExpectViolation("input { shape: 9 } layers { embed_categories {} }", "layers[0].embed_categories",
                  "has no columns");
  ExpectViolation(absl::StrCat("input { shape: 9 } layers { embed_categories { ", column, column, "} }"),
                  "layers[0].embed_categories.columns[1].first_input",
                  "is 1, but the previous column has the inputs below 4");
  ExpectViolation(
      "input { shape: 9 } layers { embed_categories { columns { name: 'c' inputs: 3 dimension: 0 } } }",
      "layers[0].embed_categories.columns[0].dimension", "at least 1");
  ExpectViolation(absl::StrCat("input { shape: 9 } layers { embed_categories { above: -1 ", column, "} }"),
                  "layers[0].embed_categories.above", "at least 0");
  ExpectViolation(absl::StrCat("input { shape: 9 } layers { ", layer,
                               "} layers { name: 'embed_categories_1.c' dense { units: 2 } }"),
                  "layers[1].name", "\"embed_categories_1.c.\", as those of layers[0]");
}

}  // namespace
}  // namespace tandem
