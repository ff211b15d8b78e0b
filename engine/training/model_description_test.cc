#include "engine/training/model_description.h"

#include <string>
#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/layers/model_template.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

v1::ModelDescription Describe(const std::string& text, int64_t batch_size = 1) {
  v1::Model model = FromText<v1::Model>(text);
  EXPECT_TRUE(ExpandTemplate(CustomaryData(model.template_()), &model).ok());
  const auto description = DescribeModel(model, batch_size);
  EXPECT_TRUE(description.ok()) << description.status();
  return description.value_or(v1::ModelDescription());
}

TEST(ModelDescriptionTest, CountsLenetByHand) {
  const v1::ModelDescription lenet = Describe("template { lenet {} }");
  ASSERT_EQ(lenet.layers_size(), 6);
  EXPECT_EQ(lenet.model().layers_size(), 6);
  const v1::LayerDescription& conv = lenet.layers(0);
  EXPECT_EQ(conv.name(), "conv2d_1");
  EXPECT_EQ(conv.kind(), "conv2d");
  EXPECT_THAT(conv.inputs(), ElementsAre("input"));
  EXPECT_THAT(conv.output_shape(), ElementsAre(20, 24, 24));
  EXPECT_EQ(conv.parameters(), 520);
  EXPECT_EQ(conv.parameter_bytes(), 2080);
  EXPECT_EQ(conv.output_bytes(), 20 * 24 * 24 * 4);
  EXPECT_EQ(conv.operations(), 20 * 24 * 24 * (2 * 25 + 1));
  EXPECT_EQ(lenet.parameters(), 431080);
  EXPECT_EQ(lenet.parameter_bytes(), 431080 * 4);
  int64_t operations = 0;
  int64_t bytes = 0;
  for (const v1::LayerDescription& layer : lenet.layers()) {
    operations += layer.operations();
    bytes += layer.output_bytes();
  }
  EXPECT_EQ(lenet.operations(), operations);
  EXPECT_EQ(lenet.output_bytes(), bytes);
}

TEST(ModelDescriptionTest, PlansMemoryForTheBatch) {
  const v1::ModelDescription one = Describe("template { lenet {} }", 1);
  const v1::ModelDescription many = Describe("template { lenet {} }", 64);
  EXPECT_EQ(many.batch_size(), 64);
  EXPECT_GT(one.inference_memory_bytes(), one.parameter_bytes());
  EXPECT_GT(many.inference_memory_bytes(), one.inference_memory_bytes());
  EXPECT_GT(many.training_memory_bytes(), many.inference_memory_bytes());
  // Parameters and their gradients.
  EXPECT_GT(one.training_memory_bytes(), 2 * one.parameter_bytes());
}

TEST(ModelDescriptionTest, CountsWhatIsWithinBlocksOnce) {
  const v1::ModelDescription description = Describe(R"(
    input { shape: [2, 4, 4] }
    layers {
      name: "twice"
      repeat {
        count: 2
        layers { name: "block" residual { activation: ACTIVATION_RELU layers { conv2d { filters: 2 kernel: 1 } } } }
      }
    }
    layers { dense { units: 3 } })");
  std::vector<std::string> names;
  for (const v1::LayerDescription& layer : description.layers()) names.push_back(layer.name());
  EXPECT_THAT(names, ElementsAre("twice.1.block.conv2d_1", "twice.1.block", "twice.2.block.conv2d_1",
                                 "twice.2.block", "twice", "dense_1"));
  EXPECT_THAT(description.layers(2).inputs(), ElementsAre("twice.1.block"));
  EXPECT_EQ(description.layers(0).parameters(), 6);
  // The sum and its activation.
  EXPECT_EQ(description.layers(1).parameters(), 0);
  EXPECT_EQ(description.layers(1).operations(), 2 * 32);
  EXPECT_EQ(description.layers(4).operations(), 0);
  EXPECT_EQ(description.parameters(), 6 + 6 + 3 * 33);
  EXPECT_EQ(description.output_bytes(), 4 * (4 * 32 + 3));
}

TEST(ModelDescriptionTest, AgreesWithTheLiterature) {
  // torchvision counts 1.81e9 multiply-adds for ResNet-18.
  const v1::ModelDescription resnet = Describe("template { resnet18 {} }");
  EXPECT_NEAR(static_cast<double>(resnet.operations()), 2 * 1.82e9, 0.03e9);
  EXPECT_EQ(resnet.parameters(), 11689512);
  EXPECT_EQ(resnet.parameter_bytes(), 4 * (11689512 + 2 * 4800));
}

TEST(ModelDescriptionTest, RefusesAWrongModel) {
  v1::Model model;
  model.mutable_input()->add_shape(3);
  EXPECT_EQ(DescribeModel(model, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
