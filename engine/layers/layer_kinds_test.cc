// Kinds of layers, one at a time: their outputs for an image, and their refusals.

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "engine/layers/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model of the layers over [6, 8, 10].
v1::Model ModelOf(const std::string& layers) {
  v1::Model model = FromText<v1::Model>(absl::StrCat("input { shape: [6, 8, 10] } ", layers));
  FillModelDefaults(&model);
  return model;
}

// Returns the shape of the last layer's output. Builds the network for training and for validation.
std::string OutputOf(const std::string& layers, std::vector<std::string>* parameters = nullptr) {
  const v1::Model model = ModelOf(layers);
  const absl::StatusOr<std::vector<Shape>> shapes = CheckModel(model);
  if (!shapes.ok()) return std::string(shapes.status().message());
  for (const bool training : {true, false}) {
    Graph graph;
    const ValueId input = graph.AddInput("input", DType::kFloat32, Shape({3, 6, 8, 10}));
    const RandomSource random = {.seed = 1, .step = graph.AddInput("step", DType::kInt64, Shape())};
    const absl::StatusOr<Network> network =
        BuildModel(model, input, DType::kFloat32, training, graph, {.random = random});
    if (!network.ok()) return std::string(network.status().message());
    const Shape& batch = graph.value(network->output).shape;
    EXPECT_EQ(batch.From(1), shapes->back());
    if (parameters == nullptr || !training) continue;
    for (const Parameter& parameter : network->parameters) {
      parameters->push_back(absl::StrCat(parameter.name, parameter.shape.ToString()));
    }
  }
  return shapes->back().ToString();
}

void ExpectViolation(const std::string& layers, const std::string& field, const std::string& part) {
  SCOPED_TRACE(layers);
  ExpectOneViolation(CheckModel(ModelOf(layers)).status(), field, part);
}

TEST(LayerKindsTest, EveryActivationIsAFunctionOfOneElement) {
  for (int i = v1::Activation_MIN; i <= v1::Activation_MAX; ++i) {
    if (i == v1::ACTIVATION_UNSPECIFIED) continue;
    const std::string name = v1::Activation_Name(static_cast<v1::Activation>(i));
    EXPECT_EQ(OutputOf(absl::StrCat("layers { activation { function: ", name, " } }")), "[6, 8, 10]");
    EXPECT_EQ(OutputOf(absl::StrCat("layers { conv2d { filters: 2 kernel: 1 activation: ", name, " } }")),
              "[2, 8, 10]");
  }
}

// Returns the name of the function that ends the network: "identity" if no function does.
std::string FunctionOf(const std::string& layers) {
  Graph graph;
  const ValueId input = graph.AddInput("input", DType::kFloat32, Shape({3, 6, 8, 10}));
  const absl::StatusOr<Network> network =
      BuildModel(ModelOf(layers), input, DType::kFloat32, true, graph, {});
  if (!network.ok()) return network.status().ToString();
  if (network->output == input) return "identity";
  const Op& op = *graph.node(graph.value(network->output).producer).op;
  if (op.kind() == "relu") return "relu";
  if (op.kind() != "activation") return "identity";
  return std::vector<std::string>(absl::StrSplit(op.attributes(), ' '))[0];
}

TEST(LayerKindsTest, EveryActivationBuildsTheFunctionOfItsName) {
  for (int i = v1::Activation_MIN; i <= v1::Activation_MAX; ++i) {
    if (i == v1::ACTIVATION_UNSPECIFIED) continue;
    const std::string name = v1::Activation_Name(static_cast<v1::Activation>(i));
    const std::string function = absl::AsciiStrToLower(absl::StripPrefix(name, "ACTIVATION_"));
    EXPECT_EQ(FunctionOf(absl::StrCat("layers { activation { function: ", name, " } }")), function);
    EXPECT_EQ(FunctionOf(absl::StrCat("layers { dense { units: 2 activation: ", name, " } }")), function);
  }
}

TEST(LayerKindsTest, ActivationsTakeTheirOwnNumbersAlone) {
  const v1::Model model = ModelOf("layers { activation { function: ACTIVATION_SOFTPLUS beta: 2 } }");
  EXPECT_EQ(model.layers(0).activation().threshold(), 20);
  ExpectViolation("layers { activation { function: ACTIVATION_ELU negative_slope: 1 } }",
                  "layers[0].activation.negative_slope", "ACTIVATION_LEAKY_RELU");
  ExpectViolation("layers { activation { function: ACTIVATION_ELU alpha: inf } }",
                  "layers[0].activation.alpha", "finite");
  ExpectViolation("layers { activation { function: ACTIVATION_SOFTPLUS beta: 0 } }",
                  "layers[0].activation.beta", "above 0");
  ExpectViolation("layers { activation {} }", "layers[0].activation.function", "required");
}

TEST(LayerKindsTest, SoftmaxKeepsTheShape) {
  EXPECT_EQ(OutputOf("layers { softmax {} } layers { log_softmax { axis: -1 } }"), "[6, 8, 10]");
  ExpectViolation("layers { softmax { axis: 3 } }", "layers[0].softmax.axis", "from -3 to 2");
  ExpectViolation("layers { log_softmax { axis: -4 } }", "layers[0].log_softmax.axis", "from -3 to 2");
}

TEST(LayerKindsTest, JoinsSeveralLayers) {
  const std::string two = R"(layers { name: "a" conv2d { filters: 4 kernel: 1 } }
                             layers { name: "b" conv2d { filters: 4 kernel: 1 } inputs: "input" } )";
  EXPECT_EQ(OutputOf(two + R"(layers { multiply {} inputs: ["a", "b"] })"), "[4, 8, 10]");
  EXPECT_EQ(OutputOf(two + R"(layers { concat {} inputs: ["a", "b", "input"] })"), "[14, 8, 10]");
  EXPECT_EQ(OutputOf(two + R"(layers { concat { axis: -1 } inputs: ["b", "a", "b"] })"), "[4, 8, 30]");
  ExpectViolation(two + R"(layers { concat { axis: 1 } inputs: ["a", "b", "input"] })", "layers[2].concat",
                  "dimension 1 alone");
  ExpectViolation(two + R"(layers { multiply {} inputs: ["a", "b", "input"] })", "layers[2].multiply",
                  "one shape");
  ExpectViolation(two + R"(layers { name: "c" add { } inputs: ["a", "b"] } layers { concat {} })",
                  "layers[3].inputs", "2 or more");
}

TEST(LayerKindsTest, SlicesARangeOfADimension) {
  EXPECT_EQ(OutputOf("layers { slice { start: 2 size: 3 } }"), "[3, 8, 10]");
  EXPECT_EQ(OutputOf("layers { slice { axis: -1 start: 7 } }"), "[6, 8, 3]");
  EXPECT_EQ(OutputOf("layers { slice {} }"), "[6, 8, 10]");
  ExpectViolation("layers { slice { axis: 3 } }", "layers[0].slice.axis", "from -3 to 2");
  ExpectViolation("layers { slice { start: -1 } }", "layers[0].slice.start", "at least 0");
  ExpectViolation("layers { slice { size: -1 } }", "layers[0].slice.size", "at least 1");
  ExpectViolation("layers { slice { start: 6 } }", "layers[0].slice.start", "ends at index 5");
  ExpectViolation("layers { slice { start: 4 size: 3 } }", "layers[0].slice.size", "has 2 indices from 4");
}

TEST(LayerKindsTest, DropoutKeepsTheShape) {
  EXPECT_EQ(OutputOf("layers { dropout {} } layers { dropout { rate: 0 } }"), "[6, 8, 10]");
  ExpectViolation("layers { dropout { rate: 1 } }", "layers[0].dropout.rate", "below 1");
}

TEST(LayerKindsTest, ReshapesTheSameElements) {
  EXPECT_EQ(OutputOf("layers { reshape { shape: [3, -1, 5] } }"), "[3, 32, 5]");
  EXPECT_EQ(OutputOf("layers { reshape { shape: 480 } } layers { dense { units: 2 } }"), "[2]");
  ExpectViolation("layers { reshape { shape: [7, -1] } }", "layers[0].reshape.shape",
                  "[7, -1] does not hold");
  ExpectViolation("layers { reshape { shape: [6, 8] } }", "layers[0].reshape.shape", "480 elements");
  ExpectViolation("layers { reshape { shape: [-1, -1] } }", "layers[0].reshape.shape[1]", "at most one");
  ExpectViolation("layers { reshape { shape: [480, 0] } }", "layers[0].reshape.shape[1]", "at least 1");
  ExpectViolation("layers { reshape {} }", "layers[0].reshape.shape", "missing");
}

TEST(LayerKindsTest, ResizesImages) {
  EXPECT_EQ(OutputOf("layers { upsample { scale: 2 } }"), "[6, 16, 20]");
  EXPECT_EQ(OutputOf("layers { upsample { scale: [1.3, 0.5] mode: UPSAMPLE_MODE_BILINEAR } }"), "[6, 10, 5]");
  EXPECT_EQ(OutputOf("layers { upsample { size: [5, 30] } }"), "[6, 5, 30]");
  ExpectViolation("layers { upsample {} }", "layers[0].upsample.scale", "missing");
  ExpectViolation("layers { upsample { scale: 2 size: 2 } }", "layers[0].upsample.scale", "leave one out");
  ExpectViolation("layers { upsample { scale: 0.01 } }", "layers[0].upsample.scale", "[0, 0]");
  ExpectViolation("layers { upsample { scale: [2, -1] } }", "layers[0].upsample.scale[1]", "above 0");
  ExpectViolation("layers { upsample { scale: 2 align_corners: true } }", "layers[0].upsample.align_corners",
                  "bilinear");
}

TEST(LayerKindsTest, NormalisesGroups) {
  std::vector<std::string> parameters;
  EXPECT_EQ(OutputOf("layers { group_norm { groups: 3 } } layers { group_norm { groups: 6 affine: false } }",
                     &parameters),
            "[6, 8, 10]");
  EXPECT_THAT(parameters, ElementsAre("group_norm_1.weight[6]", "group_norm_1.bias[6]"));
  ExpectViolation("layers { group_norm { groups: 4 } }", "layers[0].group_norm.groups", "6 channels");
  ExpectViolation("layers { group_norm {} }", "layers[0].group_norm.groups", "at least 1");
}

TEST(LayerKindsTest, TransposesConvolutions) {
  std::vector<std::string> parameters;
  EXPECT_EQ(OutputOf(R"(layers { conv_transpose2d { filters: 4 kernel: [3, 2] stride: 2 padding: [1, 0]
                        output_padding: 1 groups: 2 } })",
                     &parameters),
            "[4, 16, 21]");
  EXPECT_THAT(parameters, ElementsAre("conv_transpose2d_1.weight[6, 2, 3, 2]", "conv_transpose2d_1.bias[4]"));
  EXPECT_EQ(OutputOf("layers { conv_transpose2d { filters: 1 kernel: 3 dilation: 2 use_bias: false } }"),
            "[1, 12, 14]");
  ExpectViolation("layers { conv_transpose2d { filters: 4 kernel: 2 stride: 2 output_padding: 2 } }",
                  "layers[0].conv_transpose2d.output_padding", "less than the stride");
  ExpectViolation("layers { conv_transpose2d { filters: 4 kernel: 1 padding: 4 } }",
                  "layers[0].conv_transpose2d.padding", "[0, 2]");
  ExpectViolation("layers { conv_transpose2d { filters: 4 kernel: 1 groups: 4 } }",
                  "layers[0].conv_transpose2d.groups", "6 channels");
  ExpectViolation(R"(layers { upsample { size: 32768 } } layers { reshape { shape: [1, 1, -1] } }
                     layers { conv_transpose2d { filters: 1 kernel: 1 stride: 32768 } })",
                  "layers[2].conv_transpose2d", "at most 2147483647 pixels");
  // oneDNN computes in int32.
  ExpectViolation(
      "layers { conv2d { filters: 1 kernel: 3 dilation: 32769 padding_mode: PADDING_MODE_SAME } }",
      "layers[0].conv2d.dilation[0]", "at most 32768");
}

TEST(LayerKindsTest, ConvolutionsKeepTheSizeWithAnyKernel) {
  for (const char* kernel : {"3", "2", "[4, 1] dilation: 3", "[1, 6]"}) {
    EXPECT_EQ(OutputOf(absl::StrCat(
                  "layers { conv2d { filters: 5 padding_mode: PADDING_MODE_SAME kernel: ", kernel, " } }")),
              "[5, 8, 10]")
        << kernel;
  }
}

TEST(LayerKindsTest, ConvolutionsFindTheirPadding) {
  EXPECT_EQ(OutputOf("layers { conv2d { filters: 5 padding_mode: PADDING_MODE_VALID kernel: 3 stride: 2 } }"),
            "[5, 3, 4]");
  ExpectViolation("layers { conv2d { filters: 5 padding_mode: PADDING_MODE_VALID kernel: 3 padding: 1 } }",
                  "layers[0].conv2d.padding", "PADDING_MODE_VALID finds the padding");
  ExpectViolation("layers { conv2d { filters: 5 padding_mode: PADDING_MODE_SAME kernel: 3 stride: 2 } }",
                  "layers[0].conv2d.stride", "needs stride 1");
}

TEST(LayerKindsTest, PoolsRoundedUpAndGlobally) {
  EXPECT_EQ(OutputOf("layers { max_pool2d { size: 3 stride: 2 } }"), "[6, 3, 4]");
  EXPECT_EQ(OutputOf("layers { max_pool2d { size: 3 stride: 2 ceil_mode: true } }"), "[6, 4, 5]");
  EXPECT_EQ(OutputOf("layers { average_pool2d { size: 3 ceil_mode: true } }"), "[6, 3, 4]");
  EXPECT_EQ(OutputOf("layers { global_max_pool2d {} }"), "[6, 1, 1]");
  ExpectViolation("layers { upsample { size: 300 } } layers { global_max_pool2d {} }",
                  "layers[1].global_max_pool2d", "at most 255 by 255");
}

// A single value has no variance in training. Validation uses the running variance.
TEST(LayerKindsTest, BatchNormRefusesToTrainOnASingleValue) {
  const v1::Model model = ModelOf("layers { global_average_pool2d {} } layers { batch_norm {} }");
  for (const bool training : {true, false}) {
    Graph graph;
    const ValueId input = graph.AddInput("input", DType::kFloat32, Shape({1, 6, 8, 10}));
    const absl::Status status = BuildModel(model, input, DType::kFloat32, training, graph).status();
    EXPECT_EQ(status.ok(), !training) << status;
    if (!training) continue;
    ASSERT_EQ(GetFieldViolations(status).size(), 1) << status;
    EXPECT_EQ(GetFieldViolations(status)[0].field, "layers[1].batch_norm");
    EXPECT_THAT(GetFieldViolations(status)[0].description, HasSubstr("single value a channel"));
  }
}

// A replica's single sample is enough if other replicas have samples of the same batch.
TEST(LayerKindsTest, SyncedBatchNormRefusesABatchOfASingleValue) {
  const v1::Model model = ModelOf("layers { global_average_pool2d {} } layers { batch_norm { sync: true } }");
  for (const double share : {0.5, 1.0}) {
    Graph graph;
    const ValueId input = graph.AddInput("input", DType::kFloat32, Shape({1, 6, 8, 10}));
    BuildOptions options;
    options.batch = {.replicas = 3, .rank = 0, .share = share};
    const absl::Status status =
        BuildModel(model, input, DType::kFloat32, /*training=*/true, graph, options).status();
    EXPECT_EQ(status.ok(), share < 1) << status;
    if (status.ok()) continue;
    ASSERT_EQ(GetFieldViolations(status).size(), 1) << status;
    EXPECT_THAT(GetFieldViolations(status)[0].description, HasSubstr("single value a channel"));
  }
}

}  // namespace
}  // namespace tandem
