// Checks the form of exported files by ONNX's own checker and shape inference. tests/integration/onnx.sh
// compares their results with Tandem's, in ONNX Runtime.
#include "engine/onnx/onnx_model.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/graph/graph.h"
#include "engine/training/plan.h"
#include "engine/training/prediction.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/checker.h"
#include "onnx/onnx_pb.h"
#include "onnx/shape_inference/implementation.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

// Returns a model of these layers with weights of one, for samples of this shape and type.
TrainedModel ModelOf(const std::string& shape, const std::string& layers, SampleType type) {
  TrainedModel model;
  model.spec = FromText<v1::JobSpec>(
      absl::StrCat("name: 'net' dataset { csv {} } model { input { shape: ", shape, " } ", layers,
                   " } training { loss { mse {} } optimizer { sgd { learning_rate: 0.1 } } "
                   "global_batch_size: 4 epochs: 1 }"));
  FillDefaults(&model.spec);
  model.trained_on.sample_type = type;
  model.trained_on.normalization.scale = 1.0 / 255;
  model.trained_on.normalization.mean = {0.5};
  model.trained_on.normalization.standard_deviation = {0.25};
  const absl::StatusOr<Graph> graph = BuildPredictionGraph(model, type, 1, DType::kFloat32);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return model;
  for (const ValueId id : graph->variables()) {
    const Value& value = graph->value(id);
    Tensor weight(DType::kFloat32, value.shape);
    for (float& number : weight.data<float>()) number = 1;
    model.weights.emplace(value.name, std::move(weight));
  }
  return model;
}

// Returns the parsed file. Expects that the checker accepts it and infers the declared shape of its output.
onnx::ModelProto Checked(const TrainedModel& model) {
  onnx::ModelProto file;
  const absl::StatusOr<std::string> bytes = ToOnnx(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok() || !file.ParseFromString(*bytes)) return file;
  try {
    onnx::checker::check_model(file);
    onnx::ModelProto inferred = file;
    inferred.mutable_graph()->mutable_output(0)->clear_type();
    const onnx::ShapeInferenceOptions strict(/*check_type=*/true, /*strict_mode=*/1, /*data_prop=*/true);
    onnx::shape_inference::InferShapes(inferred, onnx::OpSchemaRegistry::Instance(), strict);
    const auto& declared = file.graph().output(0).type().tensor_type().shape();
    const auto& found = inferred.graph().output(0).type().tensor_type().shape();
    EXPECT_EQ(found.dim_size(), declared.dim_size());
    for (int i = 1; i < std::min(found.dim_size(), declared.dim_size()); ++i) {
      EXPECT_EQ(found.dim(i).dim_value(), declared.dim(i).dim_value()) << i;
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  return file;
}

TEST(OnnxModelTest, WritesImageLayers) {
  const onnx::ModelProto file = Checked(ModelOf("[3, 12, 10]", R"(
      layers { conv2d { filters: 8 kernel: 3 padding: 1 stride: 2 groups: 1 } }
      layers { batch_norm { activation: ACTIVATION_RELU } }
      layers { conv2d { filters: 8 kernel: 3 groups: 2 use_bias: false } }
      layers { group_norm { groups: 4 } }
      layers { max_pool2d { size: 2 stride: 1 } }
      layers { upsample { scale: 2 } }
      layers { average_pool2d { size: 2 padding: 1 } }
      layers { dense { units: 5 } })",
                                                SampleType::kBytes));
  const onnx::GraphProto& graph = file.graph();
  EXPECT_EQ(graph.name(), "net");
  ASSERT_EQ(graph.input_size(), 1);
  EXPECT_EQ(graph.input(0).name(), "input");
  EXPECT_EQ(graph.input(0).type().tensor_type().elem_type(), onnx::TensorProto::UINT8);
  EXPECT_EQ(graph.input(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(graph.output(0).name(), "output");
  bool has_normalization = false;
  for (const auto& entry : file.metadata_props()) {
    EXPECT_NE(entry.key(), "job");
    has_normalization = has_normalization || entry.key() == "normalization";
  }
  EXPECT_TRUE(has_normalization);
}

// Returns the numbers of the constant that is the second input of the only node of this type.
std::vector<float> ConstantOf(const onnx::GraphProto& graph, const std::string& type) {
  std::vector<float> numbers;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != type) continue;
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      if (tensor.name() != node.input(1)) continue;
      numbers.resize(tensor.raw_data().size() / sizeof(float));
      std::memcpy(numbers.data(), tensor.raw_data().data(), tensor.raw_data().size());
    }
  }
  return numbers;
}

// Samples around a large mean keep their digits: the mean is subtracted before they are scaled. No float32 is
// 1000000.01; the nearest is 1000000.
TEST(OnnxModelTest, SubtractsAMeanFirst) {
  TrainedModel model = ModelOf("[2]", "layers { dense { units: 2 use_bias: false } }", SampleType::kFloats);
  model.trained_on.normalization.scale = 1;
  model.trained_on.normalization.mean = {1000000.01, -8};
  model.trained_on.normalization.standard_deviation = {0.25, 2};
  const onnx::ModelProto file = Checked(model);
  EXPECT_THAT(ConstantOf(file.graph(), "Sub"), ElementsAre(1000000, -8));
  EXPECT_THAT(ConstantOf(file.graph(), "Mul"), ElementsAre(4, 0.5));
  EXPECT_THAT(ConstantOf(file.graph(), "Add"), ElementsAre(FloatNear(-0.04F, 1e-6F), 0));
}

TEST(OnnxModelTest, AScaleOfZeroMakesSamplesEqual) {
  TrainedModel model = ModelOf("[2]", "layers { dense { units: 2 use_bias: false } }", SampleType::kFloats);
  model.trained_on.normalization.scale = 0;
  model.trained_on.normalization.mean = {0.5, 0};
  model.trained_on.normalization.standard_deviation = {0.25, 2};
  const onnx::ModelProto file = Checked(model);
  EXPECT_THAT(ConstantOf(file.graph(), "Sub"), ElementsAre(0, 0));
  EXPECT_THAT(ConstantOf(file.graph(), "Mul"), ElementsAre(0, 0));
  EXPECT_THAT(ConstantOf(file.graph(), "Add"), ElementsAre(-2, 0));
}

TEST(OnnxModelTest, WritesSequenceLayers) {
  Checked(ModelOf("[9]", R"(
      layers { embedding { vocabulary_size: 11 dimension: 8 } }
      layers { positional_embedding {} }
      layers { multi_head_attention { heads: 2 causal: true } }
      layers { layer_norm {} }
      layers { lstm { units: 6 bidirectional: true } }
      layers { lstm { units: 6 use_bias: false output: LSTM_OUTPUT_LAST } }
      layers { dense { units: 3 } })",
                  SampleType::kTokens));
}

TEST(OnnxModelTest, NamesAMissingWeight) {
  TrainedModel model = ModelOf("[4]", "layers { dense { units: 2 } }", SampleType::kFloats);
  model.weights.erase(model.weights.begin());
  EXPECT_THAT(std::string(ToOnnx(model).status().message()), HasSubstr("it has no weight "));
}

}  // namespace
}  // namespace tandem
