#include "engine/training/layer_selection.h"

#include <algorithm>
#include <string>

#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::JobSpec Spec(const std::string& extra) {
  v1::JobSpec spec = FromText<v1::JobSpec>(extra + R"(
    model {
      input { shape: [1, 4, 4] }
      layers { conv2d { filters: 2 kernel: 3 padding: 1 } }
      layers {
        name: "block"
        residual { layers { conv2d { filters: 2 kernel: 1 } } layers { batch_norm {} } }
      }
      layers { max_pool2d { size: 2 } }
      layers { dense { units: 3 } }
    })");
  FillModelDefaults(spec.mutable_model());
  return spec;
}

LayerTable Table(const v1::JobSpec& spec) {
  absl::StatusOr<LayerTable> table = ListLayers(spec.model());
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

TEST(LayerSelectionTest, ListsLayersWithThoseWithinBlocks) {
  std::vector<std::string> lines;
  for (const BuiltLayer& layer : Table(Spec("")).trace.layers) {
    lines.push_back(layer.kind + " " + layer.name + " <- " + layer.inputs[0]);
  }
  EXPECT_THAT(lines,
              ElementsAre("conv2d conv2d_1 <- input", "conv2d block.conv2d_1 <- conv2d_1",
                          "batch_norm block.batch_norm_1 <- block.conv2d_1", "residual block <- conv2d_1",
                          "max_pool2d max_pool2d_1 <- block", "dense dense_1 <- max_pool2d_1"));
}

TEST(LayerSelectionTest, FindsTensorsOfLayersAndOfBlocks) {
  const v1::JobSpec spec = Spec("frozen_layers: ['block', 'dense_?']");
  EXPECT_THAT(TensorsOf(Table(spec), spec.frozen_layers()),
              ElementsAre("block.batch_norm_1.bias", "block.batch_norm_1.running_mean",
                          "block.batch_norm_1.running_var", "block.batch_norm_1.weight",
                          "block.conv2d_1.bias", "block.conv2d_1.weight", "dense_1.bias", "dense_1.weight"));
}

TEST(LayerSelectionTest, FrozenLayersMarkTheirParameters) {
  const v1::JobSpec spec = Spec("frozen_layers: ['block']");
  Graph graph;
  const ValueId input = graph.AddInput("x", DType::kFloat32, Shape({2, 1, 4, 4}));
  const auto network =
      BuildModel(spec.model(), input, DType::kFloat32, /*training=*/true, graph, BuildOptionsOf(spec));
  ASSERT_TRUE(network.ok()) << network.status();
  std::vector<std::string> frozen;
  for (const Parameter& parameter : network->parameters) {
    if (parameter.frozen) frozen.push_back(parameter.name);
  }
  EXPECT_THAT(frozen, ElementsAre("block.conv2d_1.weight", "block.conv2d_1.bias", "block.batch_norm_1.weight",
                                  "block.batch_norm_1.bias"));
  // The frozen layer's statistics are read only.
  for (const Node& node : graph.nodes())
    EXPECT_THAT(node.op->MutatedInputs(), ElementsAre()) << node.op->kind();
}

TEST(LayerSelectionTest, DropoutActsInAFrozenBlock) {
  v1::JobSpec spec = Spec("frozen_layers: ['block', 'dropout_*', 'dense_1']");
  spec.mutable_model()->mutable_layers(1)->mutable_residual()->add_layers()->mutable_dropout()->set_rate(0.5);
  spec.mutable_model()->add_layers()->mutable_dropout()->set_rate(0.5);
  FillModelDefaults(spec.mutable_model());
  for (const bool training : {false, true}) {
    Graph graph;
    const ValueId input = graph.AddInput("x", DType::kFloat32, Shape({2, 1, 4, 4}));
    BuildOptions options = BuildOptionsOf(spec);
    options.random.step = graph.AddInput("step", DType::kInt64, Shape());
    const auto network = BuildModel(spec.model(), input, DType::kFloat32, training, graph, options);
    ASSERT_TRUE(network.ok()) << network.status();
    EXPECT_EQ(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                            [](const Node& node) { return node.op->kind() == "dropout"; }),
              training ? 2 : 0);
  }
}

TEST(LayerSelectionTest, NamesPatternsThatMatchNothing) {
  FieldViolations violations;
  CheckFrozenLayers(Spec("frozen_layers: ['conv2d_1', 'max_pool2d_1', 'convolution']"), violations);
  ASSERT_EQ(violations.violations().size(), 2u);
  EXPECT_EQ(violations.violations()[0].field, "frozen_layers[1]");
  EXPECT_EQ(violations.violations()[1].field, "frozen_layers[2]");
  EXPECT_THAT(violations.violations()[1].description,
              HasSubstr("is \"convolution\", which matches no layer with parameters; they are conv2d_1, "
                        "block.conv2d_1, block.batch_norm_1, block, dense_1"));
}

TEST(LayerSelectionTest, SomethingIsLeftToTrain) {
  FieldViolations violations;
  CheckFrozenLayers(Spec("frozen_layers: ['*']"), violations);
  ASSERT_EQ(violations.violations().size(), 1u);
  EXPECT_EQ(violations.violations()[0].field, "frozen_layers");
  FieldViolations none;
  CheckFrozenLayers(Spec("frozen_layers: ['conv2d_1', 'block']"), none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace tandem
