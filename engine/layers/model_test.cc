#include "engine/layers/model.h"

#include <map>
#include <string>

#include "engine/base/field_violations.h"
#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Model Parse(const std::string& text) {
  v1::Model model = FromText<v1::Model>(text);
  FillModelDefaults(&model);
  return model;
}

v1::Model Lenet() {
  return Parse(R"(
    input { shape: [1, 28, 28] }
    layers { conv2d { filters: 20 kernel: [5, 5] } }
    layers { max_pool2d { size: 2 } }
    layers { conv2d { filters: 50 kernel: 5 } }
    layers { max_pool2d { size: [2, 2] } }
    layers { dense { units: 500 activation: ACTIVATION_RELU } }
    layers { dense { units: 10 } })");
}

std::vector<FieldViolation> ViolationsOf(const std::string& text) {
  return GetFieldViolations(CheckModel(Parse(text)).status());
}

// Expects a single violation.
void ExpectViolation(const std::string& text, const std::string& field, const std::string& part) {
  SCOPED_TRACE(text);
  ExpectOneViolation(CheckModel(Parse(text)).status(), field, part);
}

TEST(ModelTest, NamesLayersAndFillsDefaultsIn) {
  const v1::Model model = Lenet();
  std::vector<std::string> names;
  for (const v1::Layer& layer : model.layers()) names.push_back(layer.name());
  EXPECT_THAT(names,
              ElementsAre("conv2d_1", "max_pool2d_1", "conv2d_2", "max_pool2d_2", "dense_1", "dense_2"));
  EXPECT_THAT(model.layers(0).conv2d().stride(), ElementsAre(1, 1));
  EXPECT_THAT(model.layers(0).conv2d().padding(), ElementsAre(0, 0));
  EXPECT_TRUE(model.layers(0).conv2d().use_bias());
  EXPECT_EQ(model.layers(0).conv2d().weight_initializer().xavier().distribution(),
            v1::INITIALIZER_DISTRIBUTION_UNIFORM);
  EXPECT_THAT(model.layers(1).max_pool2d().stride(), ElementsAre(2));
}

TEST(ModelTest, OneInitializerIsForAllWeights) {
  const v1::Model model = Parse(R"(
    input { shape: [3, 8, 8] } weight_initializer { normal { standard_deviation: 0.01 } }
    layers { conv2d { filters: 4 kernel: 3 weight_initializer { he {} } } }
    layers { batch_norm {} }
    layers { residual { layers { conv2d { filters: 4 kernel: 1 } } shortcut { conv2d { filters: 4 kernel: 1 } } } }
    layers { dense { units: 4 } })");
  EXPECT_TRUE(CheckModel(model).ok()) << CheckModel(model).status();
  EXPECT_TRUE(model.layers(0).conv2d().weight_initializer().has_he());
  EXPECT_TRUE(model.layers(1).batch_norm().weight_initializer().has_constant());
  const v1::Residual& residual = model.layers(2).residual();
  EXPECT_EQ(residual.layers(0).conv2d().weight_initializer().normal().standard_deviation(), 0.01);
  EXPECT_EQ(residual.shortcut(0).conv2d().weight_initializer().normal().standard_deviation(), 0.01);
  EXPECT_TRUE(residual.layers(0).conv2d().bias_initializer().has_zeros());
  EXPECT_EQ(model.layers(3).dense().weight_initializer().normal().standard_deviation(), 0.01);

  // An initializer of no kind is none.
  EXPECT_TRUE(Parse("input { shape: 8 } weight_initializer {} layers { dense { units: 4 } }")
                  .layers(0)
                  .dense()
                  .weight_initializer()
                  .has_xavier());

  // A wrong initializer is reported once.
  ExpectViolation(R"(input { shape: 8 } weight_initializer { normal { standard_deviation: -1 } }
                     layers { dense { units: 4 } } layers { dense { units: 4 } })",
                  "weight_initializer.normal.standard_deviation", "-1");
}

TEST(ModelTest, BiasesKeepTheirOwnInitializer) {
  const v1::Model model = Parse(R"(
    input { shape: [5, 4] } weight_initializer { constant { value: 0.5 } }
    layers { lstm { units: 16 } }
    layers { lstm { units: 16 weight_initializer { zeros {} } } }
    layers { lstm { units: 16 bias_initializer { constant { value: 1 } } } })");
  EXPECT_EQ(model.layers(0).lstm().weight_initializer().constant().value(), 0.5);
  EXPECT_EQ(model.layers(0).lstm().recurrent_initializer().constant().value(), 0.5);
  EXPECT_EQ(model.layers(0).lstm().bias_initializer().uniform().high(), 0.25);
  EXPECT_TRUE(model.layers(1).lstm().weight_initializer().has_zeros());
  EXPECT_TRUE(model.layers(1).lstm().bias_initializer().has_zeros());
  EXPECT_EQ(model.layers(2).lstm().weight_initializer().constant().value(), 0.5);
  EXPECT_EQ(model.layers(2).lstm().bias_initializer().constant().value(), 1);
}

TEST(ModelTest, NamesStepAsideForThoseThatAreGiven) {
  const v1::Model model = Parse(R"(
    input { shape: 8 }
    layers { name: "dense_2" dense { units: 4 } }
    layers { dense { units: 4 } }
    layers { dense { units: 4 } }
    layers { dense { units: 4 } }
    layers { name: "dense_4" dense { units: 4 } }
    layers { dense { units: 4 } })");
  EXPECT_TRUE(CheckModel(model).ok()) << CheckModel(model).status();
  std::vector<std::string> names;
  for (const v1::Layer& layer : model.layers()) names.push_back(layer.name());
  EXPECT_THAT(names, ElementsAre("dense_2", "dense_3", "dense_5", "dense_6", "dense_4", "dense_8"));
}

TEST(ModelTest, InfersEveryShape) {
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(Lenet());
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(Shape({20, 24, 24}), Shape({20, 12, 12}), Shape({50, 8, 8}),
                                   Shape({50, 4, 4}), Shape({500}), Shape({10})));
}

TEST(ModelTest, BuildsTheGraphWithItsParameters) {
  Graph graph;
  const ValueId input = graph.AddInput("images", DType::kFloat32, Shape({32, 1, 28, 28}));
  const absl::StatusOr<Network> network =
      BuildModel(Lenet(), input, DType::kFloat32, /*training=*/true, graph);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(graph.value(network->output).shape, Shape({32, 10}));
  std::vector<std::string> names;
  int64_t elements = 0;
  for (const Parameter& parameter : network->parameters) {
    names.push_back(parameter.name);
    elements += parameter.shape.elements();
  }
  EXPECT_THAT(names, ElementsAre("conv2d_1.weight", "conv2d_1.bias", "conv2d_2.weight", "conv2d_2.bias",
                                 "dense_1.weight", "dense_1.bias", "dense_2.weight", "dense_2.bias"));
  EXPECT_EQ(elements, 431080);
  EXPECT_EQ(network->parameters[2].fans.in, 500);
  EXPECT_EQ(network->parameters[2].fans.out, 1250);
}

TEST(ModelTest, FansOfGroupedConvolutionsArePyTorchs) {
  Graph graph;
  const ValueId input = graph.AddInput("images", DType::kFloat32, Shape({2, 6, 8, 8}));
  const absl::StatusOr<Network> network = BuildModel(
      Parse("input { shape: [6, 8, 8] } layers { conv2d { filters: 12 kernel: [3, 5] groups: 3 } }"), input,
      DType::kFloat32, /*training=*/true, graph);
  ASSERT_TRUE(network.ok()) << network.status();
  // Values of torch.nn.init._calculate_fan_in_and_fan_out for a weight [12, 2, 3, 5].
  EXPECT_EQ(network->parameters[0].fans.in, 30);
  EXPECT_EQ(network->parameters[0].fans.out, 180);
}

TEST(ModelTest, LayersMayReadAnyEarlierLayer) {
  const v1::Model model = Parse(R"(
    input { shape: 8 }
    layers { name: "a" dense { units: 4 } }
    layers { name: "b" inputs: "a" activation { function: ACTIVATION_RELU } })");
  EXPECT_TRUE(CheckModel(model).ok()) << CheckModel(model).status();
}

TEST(ModelTest, SamePaddingKeepsTheSize) {
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(Parse(R"(
    input { shape: [1, 9, 7] }
    layers { conv2d { filters: 2 kernel: [3, 5] dilation: [2, 1] padding_mode: PADDING_MODE_SAME } })"));
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ((*shapes)[0], Shape({2, 9, 7}));
}

TEST(ModelTest, SaysBothShapesAndTheLayersName) {
  ExpectViolation(
      R"(input { shape: [1, 28, 28] }
    layers { dense { units: 500 } }
    layers { name: "late" conv2d { filters: 4 kernel: 3 } })",
      "layers[1].conv2d",
      "layer \"late\" reads [500] from layer \"dense_1\": takes images [channels, height, width], not [500]");
  ExpectViolation(R"(input { shape: [1, 4, 4] } layers { conv2d { filters: 20 kernel: 5 } })",
                  "layers[0].conv2d.kernel",
                  "layer \"conv2d_1\" reads [1, 4, 4] from the input: a window of [5, 5]");
  ExpectViolation(R"(input { shape: [3, 4, 4] } layers { conv2d { filters: 20 kernel: 1 groups: 2 } })",
                  "layers[0].conv2d.groups", "must divide the 3 channels of the input [3, 4, 4]");
}

TEST(ModelTest, RefusesNegativeAndHugeSizes) {
  ExpectViolation(R"(input { shape: [1, 28, 28] } layers { conv2d { filters: 20 kernel: [-5, 5] } })",
                  "layers[0].conv2d.kernel[0]", "is -5; it must be at least 1");
  ExpectViolation(R"(input { shape: 8 } layers { dense { units: 9000000000000000000 } })",
                  "layers[0].dense.units", "it must be at most 2147483647");
  ExpectViolation(R"(input { shape: [2147483647, 2147483647, 2147483647] } layers { flatten {} })",
                  "input.shape", "is too large");
  ExpectViolation(R"(input { shape: [1, 2147483647, 16] }
    layers { conv2d { filters: 2147483647 kernel: 1 } })",
                  "layers[0].conv2d", "is too large");
  ExpectViolation(R"(input { shape: [1, 64, 64] } layers { max_pool2d { size: 16 } })",
                  "layers[0].max_pool2d.size", "at most 255");
  ExpectViolation(R"(input { shape: [1, 64, 64] } layers { average_pool2d { size: 2 padding: 2 } })",
                  "layers[0].average_pool2d.padding", "must be at most half the size, [2, 2]");
  ExpectViolation(R"(input { shape: [1, 64, 64] } layers { max_pool2d { size: 0 } })",
                  "layers[0].max_pool2d.size[0]", "is 0; it must be at least 1");
}

TEST(ModelTest, RefusesLayersOfNoKind) {
  ExpectViolation(R"(input { shape: 8 } layers { name: "what" })", "layers[0]", "names no kind of layer");
  ExpectViolation(R"(input { shape: 8 })", "layers", "is empty");
}

TEST(ModelTest, RefusesBadNamesAndInputs) {
  ExpectViolation(R"(input { shape: 8 }
    layers { name: "a" flatten {} } layers { name: "a" flatten {} })",
                  "layers[1].name", "layers[0] too");
  ExpectViolation(R"(input { shape: 8 } layers { name: "input" flatten {} })", "layers[0].name",
                  "stands for the sample");
  ExpectViolation(R"(input { shape: 8 } layers { name: "a/b" flatten {} })", "layers[0].name",
                  "letters, digits");
  ExpectViolation(R"(input { shape: 8 }
    layers { flatten {} } layers { inputs: "b" flatten {} })",
                  "layers[1].inputs[0]", "no layer has that name");
  ExpectViolation(R"(input { shape: 8 }
    layers { inputs: "b" flatten {} } layers { name: "b" flatten {} })",
                  "layers[0].inputs[0]", "move it up");
  ExpectViolation(R"(input { shape: 8 }
    layers { flatten {} } layers { inputs: "input" flatten {} })",
                  "layers[0]", "is read by no other layer");
}

TEST(ModelTest, BatchNormHasParametersAndStatistics) {
  const v1::Model model = Parse(R"(
    input { shape: [3, 8, 6] }
    layers { name: "norm" batch_norm { activation: ACTIVATION_RELU } }
    layers { name: "plain" batch_norm { affine: false epsilon: 0 } }
    layers { name: "mean" global_average_pool2d {} })");
  EXPECT_EQ(model.layers(0).batch_norm().epsilon(), 1e-5);
  EXPECT_EQ(model.layers(0).batch_norm().momentum(), 0.1);
  EXPECT_EQ(model.layers(0).batch_norm().weight_initializer().constant().value(), 1);
  EXPECT_EQ(model.layers(1).batch_norm().epsilon(), 0);
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(model);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ(shapes->back(), Shape({3, 1, 1}));
  for (const bool training : {true, false}) {
    Graph graph;
    const ValueId input = graph.AddInput("images", DType::kFloat32, Shape({4, 3, 8, 6}));
    const absl::StatusOr<Network> network = BuildModel(model, input, DType::kFloat32, training, graph);
    ASSERT_TRUE(network.ok()) << network.status();
    std::vector<std::string> names;
    for (const Parameter& parameter : network->parameters) names.push_back(parameter.name);
    EXPECT_THAT(names, ElementsAre("norm.weight", "norm.bias"));
    names.clear();
    for (const Statistic& statistic : network->statistics) {
      names.push_back(statistic.name);
      EXPECT_EQ(graph.value(statistic.value).variable_kind, VariableKind::kStatistic);
    }
    EXPECT_THAT(names, ElementsAre("norm.running_mean", "norm.running_var", "plain.running_mean",
                                   "plain.running_var"));
    EXPECT_EQ(graph.node(0).op->kind(), training ? "batch_norm" : "batch_norm_inference");
  }
  ExpectViolation(R"(input { shape: 8 } layers { batch_norm { momentum: 1.5 } })",
                  "layers[0].batch_norm.momentum", "is 1.5; it must be from 0 to 1");
  ExpectViolation(R"(input { shape: 8 } layers { batch_norm { epsilon: -1 } })",
                  "layers[0].batch_norm.epsilon", "is -1");
}

TEST(ModelTest, AddTakesSeveralInputsOfOneShape) {
  EXPECT_TRUE(CheckModel(Parse(R"(
    input { shape: 8 }
    layers { name: "a" dense { units: 8 } }
    layers { name: "b" inputs: ["input", "a", "a"] add { activation: ACTIVATION_RELU } })"))
                  .ok());
  ExpectViolation(
      R"(input { shape: 8 } layers { name: "a" dense { units: 4 } }
    layers { name: "b" inputs: ["a", "input"] add {} })",
      "layers[1].add",
      "layer \"b\" reads [4] from layer \"a\", [8] from the input: its inputs must have one shape");
  ExpectViolation(R"(input { shape: 8 } layers { flatten {} } layers { name: "b" add {} })",
                  "layers[1].inputs", "reads 2 or more");
  ExpectViolation(R"(input { shape: 8 } layers { name: "a" inputs: ["input", "input"] flatten {} })",
                  "layers[0].inputs", "reads one input");
}

TEST(ModelTest, BlocksNameTheirParameters) {
  const v1::Model model = Parse(R"(
    input { shape: [4, 8, 8] }
    layers { repeat { count: 2 layers { residual {
      layers { conv2d { filters: 4 kernel: 3 padding: 1 } }
      layers { batch_norm {} }
      activation: ACTIVATION_RELU
    } } } }
    layers { name: "down" residual {
      layers { conv2d { filters: 6 kernel: 3 padding: 1 stride: 2 use_bias: false } }
      shortcut { conv2d { filters: 6 kernel: 1 stride: 2 use_bias: false } }
    } })");
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(model);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(Shape({4, 8, 8}), Shape({6, 4, 4})));
  Graph graph;
  const ValueId input = graph.AddInput("images", DType::kFloat32, Shape({5, 4, 8, 8}));
  const absl::StatusOr<Network> network = BuildModel(model, input, DType::kFloat32, /*training=*/true, graph);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(graph.value(network->output).shape, Shape({5, 6, 4, 4}));
  std::vector<std::string> names;
  for (const Parameter& parameter : network->parameters) names.push_back(parameter.name);
  EXPECT_THAT(
      names,
      ElementsAre("repeat_1.1.residual_1.conv2d_1.weight", "repeat_1.1.residual_1.conv2d_1.bias",
                  "repeat_1.1.residual_1.batch_norm_1.weight", "repeat_1.1.residual_1.batch_norm_1.bias",
                  "repeat_1.2.residual_1.conv2d_1.weight", "repeat_1.2.residual_1.conv2d_1.bias",
                  "repeat_1.2.residual_1.batch_norm_1.weight", "repeat_1.2.residual_1.batch_norm_1.bias",
                  "down.conv2d_1.weight", "down.shortcut.conv2d_1.weight"));
  EXPECT_EQ(network->statistics[0].name, "repeat_1.1.residual_1.batch_norm_1.running_mean");
}

TEST(ModelTest, BlocksSayWhereTheFaultIs) {
  ExpectViolation(R"(input { shape: [4, 8, 8] }
    layers { residual { layers { conv2d { filters: 4 kernel: 0 } } } })",
                  "layers[0].residual.layers[0].conv2d.kernel[0]", "is 0; it must be at least 1");
  ExpectViolation(R"(input { shape: [4, 8, 8] } layers { residual {} })", "layers[0].residual.layers",
                  "is empty");
  ExpectViolation(R"(input { shape: [4, 8, 8] }
    layers { residual { layers { conv2d { filters: 4 kernel: 3 } } } })",
                  "layers[0].residual.layers",
                  "the layers give [4, 6, 6], but the shortcut [4, 8, 8], the input itself; give a shortcut");
  ExpectViolation(R"(input { shape: [4, 8, 8] }
    layers { residual { layers { flatten {} } shortcut { conv2d { filters: 4 kernel: 9 } } } })",
                  "layers[0].residual.shortcut[0].conv2d.kernel", "a window of [9, 9]");
  ExpectViolation(R"(input { shape: [4, 8, 8] } layers { repeat { layers { flatten {} } } })",
                  "layers[0].repeat.count", "is 0; it must be from 1");
  ExpectViolation(R"(input { shape: [4, 8, 8] }
    layers { repeat { count: 4 layers { max_pool2d { size: 2 } } } })",
                  "layers[0].repeat.layers[0].max_pool2d.size", "at repetition 4: ");
  ExpectViolation(R"(input { shape: [4, 8, 8] }
    layers { name: "a.1" conv2d { filters: 4 kernel: 1 } }
    layers { name: "a" repeat { count: 2 layers { name: "b" conv2d { filters: 4 kernel: 1 } } } }
    layers { name: "a.1.b" conv2d { filters: 4 kernel: 1 } })",
                  "layers[2].name", "\"a.1.b.\", as those of layers[1].repeat.layers[0]");
  // An attention has an inner layer.
  ExpectViolation(R"(input { shape: [4, 8] }
    layers { name: "a" multi_head_attention { heads: 2 } }
    layers { name: "a.out_proj" dense { units: 8 per_position: true } })",
                  "layers[1].name", "\"a.out_proj.\", as those of layers[0]");
}

TEST(ModelTest, RefusesMoreLayersThanFitHoweverNested) {
  std::string nested = "flatten {}";
  for (int i = 0; i < 20; ++i) nested = "repeat { count: 1000000000 layers { " + nested + " } }";
  ExpectViolation("input { shape: 8 } layers { " + nested + " }", "layers", "at most 4096 are taken");
}

TEST(ModelTest, RefusesMoreOperationsThanCanBePlanned) {
  const v1::Model model = Parse(R"(
    input { shape: [2, 3] }
    layers { repeat { count: 1000 layers { lstm { units: 1 layers: 64 bidirectional: true } } } })");
  ASSERT_TRUE(CheckModel(model).ok()) << CheckModel(model).status();
  Graph graph;
  const ValueId input = graph.AddInput("input", DType::kFloat32, Shape({1, 2, 3}));
  const absl::Status status = BuildModel(model, input, DType::kFloat32, true, graph).status();
  ASSERT_EQ(GetFieldViolations(status).size(), 1) << status;
  EXPECT_EQ(GetFieldViolations(status)[0].field, "layers[0].repeat.layers[0]");
  EXPECT_THAT(GetFieldViolations(status)[0].description, HasSubstr("more than 32768 operations"));

  std::string many = "input { shape: 8 } layers { add {} inputs: [\"input\"";
  for (int i = 0; i < 2000; ++i) many += ", \"input\"";
  ExpectViolation(many + "] }", "layers[0].inputs", "at most 1024");
}

TEST(ModelTest, ReportsEverythingAtOnce) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : ViolationsOf(R"(
         input { shape: [1, 28, 28] }
         layers { conv2d { filters: 0 kernel: [5, 0] stride: [1, 1, 1] } }
         layers { dense { units: -1 weight_initializer { normal { standard_deviation: -1 } } } })")) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields, ElementsAre("layers[0].conv2d.filters", "layers[0].conv2d.kernel[1]",
                                  "layers[0].conv2d.stride", "layers[1].dense.units",
                                  "layers[1].dense.weight_initializer.normal.standard_deviation"));
}

// A small GPT over tokens, with GPT-2's initial distributions.
constexpr char kGpt[] = R"(
    input { shape: [16] }
    layers { embedding { vocabulary_size: 29 dimension: 12
                         weight_initializer { normal { standard_deviation: 0.02 } } } }
    layers { positional_embedding {} }
    layers { repeat { count: 2
      layers { residual {
        layers { layer_norm {} }
        layers { multi_head_attention { heads: 3 causal: true
                   output_weight_initializer { normal { standard_deviation: 0.01 } } } }
      } }
      layers { residual {
        layers { layer_norm {} }
        layers { dense { units: 48 per_position: true activation: ACTIVATION_RELU } }
        layers { dense { units: 12 per_position: true } }
      } }
    } }
    layers { layer_norm {} }
    layers { dense { units: 29 per_position: true use_bias: false } })";

TEST(ModelTest, AGptReadsTokens) {
  const v1::Model model = Parse(kGpt);
  EXPECT_TRUE(ReadsTokens(model));
  EXPECT_FALSE(ReadsTokens(Lenet()));
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(model);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(Shape({16, 12}), Shape({16, 12}), Shape({16, 12}), Shape({16, 12}),
                                   Shape({16, 29})));
  EXPECT_EQ(model.layers(1).positional_embedding().weight_initializer().normal().standard_deviation(), 0.02);

  Graph graph;
  const ValueId input = graph.AddInput("input", DType::kInt32, Shape({4, 16}));
  const absl::StatusOr<Network> network = BuildModel(model, input, DType::kFloat32, true, graph);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(graph.value(network->output).shape, Shape({4, 16, 29}));
  std::map<std::string, Shape> parameters;
  for (const Parameter& parameter : network->parameters) parameters[parameter.name] = parameter.shape;
  EXPECT_EQ(parameters.size(), 2 + 2 * (2 + 4 + 2 + 4) + 2 + 1);
  EXPECT_EQ(parameters.at("embedding_1.weight"), Shape({29, 12}));
  EXPECT_EQ(parameters.at("positional_embedding_1.weight"), Shape({16, 12}));
  EXPECT_EQ(parameters.at("repeat_1.2.residual_1.multi_head_attention_1.in_proj_weight"), Shape({36, 12}));
  EXPECT_EQ(parameters.at("repeat_1.2.residual_1.multi_head_attention_1.out_proj.bias"), Shape({12}));
  EXPECT_EQ(parameters.at("repeat_1.1.residual_2.dense_1.weight"), Shape({48, 12}));
}

TEST(ModelTest, AnLstmGivesASequenceOrItsLastState) {
  const std::string text = R"(
    input { shape: [7, 5] }
    layers { lstm { units: 4 layers: 2 bidirectional: true } }
    layers { lstm { units: 3 use_bias: false output: LSTM_OUTPUT_LAST } }
    layers { dense { units: 2 } })";
  const v1::Model model = Parse(text);
  EXPECT_EQ(model.layers(0).lstm().recurrent_initializer().uniform().high(), 0.5);
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(model);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(Shape({7, 8}), Shape({3}), Shape({2})));

  Graph graph;
  const ValueId input = graph.AddInput("input", DType::kFloat32, Shape({6, 7, 5}));
  const absl::StatusOr<Network> network = BuildModel(model, input, DType::kFloat32, false, graph);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(graph.value(network->output).shape, Shape({6, 2}));
  std::map<std::string, Shape> parameters;
  for (const Parameter& parameter : network->parameters) parameters[parameter.name] = parameter.shape;
  EXPECT_EQ(parameters.size(), 4 * 4 + 2 + 2);
  EXPECT_EQ(parameters.at("lstm_1.weight_ih_l1_reverse"), Shape({16, 8}));
  EXPECT_EQ(parameters.at("lstm_1.bias_hh_l0"), Shape({16}));
  EXPECT_EQ(parameters.at("lstm_2.weight_hh_l0"), Shape({12, 3}));
}

TEST(ModelTest, NormalisesAndAppliesLayersPerPosition) {
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(Parse(R"(
    input { shape: [3, 4, 6] }
    layers { layer_norm { dimensions: 3 } }
    layers { layer_norm { affine: false } }
    layers { dense { units: 5 per_position: true } }
    layers { dense { units: 2 } })"));
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(Shape({3, 4, 6}), Shape({3, 4, 6}), Shape({3, 4, 5}), Shape({2})));
}

TEST(ModelTest, SequenceLayersNameTheFieldAtFault) {
  const std::string vectors = "input { shape: [7, 6] } ";
  ExpectViolation(vectors + "layers { multi_head_attention { heads: 4 } }",
                  "layers[0].multi_head_attention.heads", "must divide the 6 features");
  ExpectViolation("input { shape: [7] } layers { lstm { units: 4 } }", "layers[0].lstm",
                  "takes sequences [length, features], not [7]");
  ExpectViolation(vectors + "layers { lstm { units: 4 layers: 65 } }", "layers[0].lstm.layers",
                  "from 1 to 64");
  ExpectViolation("input { shape: [7] } layers { dense { units: 4 per_position: true } }",
                  "layers[0].dense.per_position", "takes sequences [length, features]");
  ExpectViolation(vectors + "layers { layer_norm { dimensions: 3 } }", "layers[0].layer_norm.dimensions",
                  "but the input [7, 6] has 2");
  ExpectViolation(vectors + "layers { layer_norm { affine: false use_bias: true } }",
                  "layers[0].layer_norm.use_bias", "needs the weight");
  ExpectViolation(vectors +
                      "layers { positional_embedding { kind: POSITIONAL_EMBEDDING_KIND_SINUSOIDAL "
                      "weight_initializer { zeros {} } } }",
                  "layers[0].positional_embedding.weight_initializer", "have no weight");
  ExpectViolation(
      "input { shape: [7] } layers { embedding { vocabulary_size: 4 dimension: 2 padding_token: 4 } }",
      "layers[0].embedding.padding_token", "from 0 to below 4");
}

TEST(ModelTest, OnlyEmbeddingsReadTokens) {
  const std::string tokens = "input { shape: [7] } ";
  const std::string embedding = "embedding { vocabulary_size: 4 dimension: 2 } ";
  ExpectViolation(
      tokens + "layers { " + embedding + " } layers { dense { units: 3 } } layers { " + embedding + " }",
      "layers[2]", "which only the model's input is");
  ExpectViolation(tokens + "layers { repeat { count: 1 layers { " + embedding + " } } }",
                  "layers[0].repeat.layers[0]", "move it out of the block");
  ExpectViolation(
      tokens + "layers { name: \"e\" " + embedding +
          " } layers { name: \"d\" inputs: \"input\" dense { units: 14 } } "
          "layers { name: \"f\" inputs: \"e\" flatten {} } layers { inputs: \"d\" inputs: \"f\" add {} }",
      "layers[1]", "let it read what \"e\" gives");
}

}  // namespace
}  // namespace tandem
