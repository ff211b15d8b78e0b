#include "engine/layers/model_template.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "engine/graph/graph.h"
#include "engine/layers/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Returns the expansion with its defaults.
v1::Model Expanded(const std::string& text, const TemplateData& data) {
  v1::Model model = FromText<v1::Model>(text);
  const absl::Status status = ExpandTemplate(data, &model);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(model.has_template_());
  FillModelDefaults(&model);
  return model;
}

Shape OutputShape(const v1::Model& model) {
  const auto shapes = CheckModel(model);
  EXPECT_TRUE(shapes.ok()) << shapes.status();
  return shapes.ok() ? shapes->back() : Shape();
}

std::map<std::string, Shape> Parameters(const v1::Model& model, DType input_type = DType::kFloat32) {
  Graph graph;
  const ValueId input = graph.AddInput("x", input_type, InputShapeOf(model).Batched(2));
  const auto network = BuildModel(model, input, DType::kFloat32, /*training=*/false, graph);
  EXPECT_TRUE(network.ok()) << network.status();
  std::map<std::string, Shape> parameters;
  for (const Parameter& parameter : network->parameters) parameters[parameter.name] = parameter.shape;
  return parameters;
}

int64_t Count(const std::map<std::string, Shape>& parameters) {
  int64_t count = 0;
  for (const auto& [name, shape] : parameters) count += shape.elements();
  return count;
}

std::vector<FieldViolation> Violations(const std::string& text, const TemplateData& data) {
  v1::Model model = FromText<v1::Model>(text);
  const v1::Model before = model;
  const absl::Status status = ExpandTemplate(data, &model);
  EXPECT_FALSE(status.ok()) << text;
  EXPECT_EQ(model.SerializeAsString(), before.SerializeAsString());
  return GetFieldViolations(status);
}

const TemplateData kMnist = {.sample = Shape({1, 28, 28}), .outputs = 10};
const TemplateData kImagenet = {.sample = Shape({3, 224, 224}), .outputs = 1000};
const TemplateData kCifar = {.sample = Shape({3, 32, 32}), .outputs = 10};

TEST(ModelTemplateTest, LenetIsThatOfTheExamples) {
  const v1::Model model = Expanded("template { lenet {} }", kMnist);
  EXPECT_EQ(model.name(), "lenet");
  EXPECT_EQ(OutputShape(model), Shape({10}));
  const std::map<std::string, Shape> parameters = Parameters(model);
  EXPECT_EQ(Count(parameters), 431080);
  EXPECT_EQ(parameters.at("conv2d_1.weight"), Shape({20, 1, 5, 5}));
  EXPECT_EQ(parameters.at("dense_2.weight"), Shape({10, 500}));
}

TEST(ModelTemplateTest, LenetTakesItsSettings) {
  const v1::Model model = Expanded(
      "name: 'mine' template { classes: 7 lenet { width: 0.5 average_pool: true activation: ACTIVATION_RELU "
      "} }",
      kMnist);
  EXPECT_EQ(model.name(), "mine");
  EXPECT_EQ(OutputShape(model), Shape({7}));
  EXPECT_TRUE(model.layers(1).has_average_pool2d());
  EXPECT_EQ(model.layers(0).conv2d().filters(), 10);
  EXPECT_EQ(model.layers(0).conv2d().activation(), v1::ACTIVATION_RELU);
}

TEST(ModelTemplateTest, AModelsInitializerReplacesTheTemplates) {
  const v1::Model model =
      Expanded("weight_initializer { uniform { low: -1 high: 1 } } template { resnet18 {} }", kMnist);
  EXPECT_EQ(model.layers(0).conv2d().weight_initializer().uniform().high(), 1);
  EXPECT_TRUE(Expanded("weight_initializer {} template { resnet18 {} }", kMnist)
                  .layers(0)
                  .conv2d()
                  .weight_initializer()
                  .has_he());
  const std::vector<FieldViolation> found =
      Violations("weight_initializer { uniform { low: 1 high: -1 } } template { mlp {} }", kMnist);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].field, HasSubstr("weight_initializer.uniform"));
}

// Numbers and names are those of torchvision.
TEST(ModelTemplateTest, ResnetsAreThoseOfTheirPaper) {
  const std::map<std::string, Shape> resnet18 = Parameters(Expanded("template { resnet18 {} }", kImagenet));
  EXPECT_EQ(Count(resnet18), 11689512);
  EXPECT_EQ(resnet18.at("conv1.weight"), Shape({64, 3, 7, 7}));
  EXPECT_EQ(resnet18.at("layer2.0.downsample.0.weight"), Shape({128, 64, 1, 1}));
  EXPECT_EQ(resnet18.at("layer4.1.bn2.bias"), Shape({512}));
  EXPECT_EQ(resnet18.at("fc.weight"), Shape({1000, 512}));
  EXPECT_EQ(resnet18.count("conv1.bias"), 0u);
  EXPECT_EQ(Count(Parameters(Expanded("template { resnet34 {} }", kImagenet))), 21797672);
  const std::map<std::string, Shape> resnet50 = Parameters(Expanded("template { resnet50 {} }", kImagenet));
  EXPECT_EQ(Count(resnet50), 25557032);
  EXPECT_EQ(resnet50.at("layer1.0.downsample.0.weight"), Shape({256, 64, 1, 1}));
}

TEST(ModelTemplateTest, ResnetsOfSmallImagesBeginSmall) {
  const v1::Model model = Expanded("template { resnet18 { width: 8 } }", kMnist);
  EXPECT_EQ(model.layers(0).conv2d().kernel(0), 3);
  EXPECT_FALSE(model.layers(2).has_max_pool2d());
  EXPECT_EQ(OutputShape(model), Shape({10}));
  const v1::Model large = Expanded("template { resnet18 { width: 8 stem: STEM_IMAGENET } }", kMnist);
  EXPECT_EQ(large.layers(0).conv2d().kernel(0), 7);
  EXPECT_TRUE(large.layers(2).has_max_pool2d());
}

TEST(ModelTemplateTest, VggIsThatOfItsPaper) {
  // Without dropout, which has no parameters.
  const std::map<std::string, Shape> vgg =
      Parameters(Expanded("template { vgg11 { dropout: 0 } }", kImagenet));
  EXPECT_EQ(Count(vgg), 132863336);
  EXPECT_EQ(vgg.at("features.18.weight"), Shape({512, 512, 3, 3}));
  EXPECT_EQ(vgg.at("classifier.0.weight"), Shape({4096, 25088}));
  const v1::Model small =
      Expanded("template { vgg11 { width: 4 units: 16 dropout: 0 batch_norm: true } }", kMnist);
  EXPECT_EQ(OutputShape(small), Shape({10}));
  EXPECT_EQ(Parameters(small).at("features.1.weight"), Shape({4}));
}

TEST(ModelTemplateTest, MatlabsNetworkHasThreeBlocks) {
  const v1::Model model = Expanded("template { matlab_cifar {} }", kCifar);
  EXPECT_EQ(OutputShape(model), Shape({10}));
  EXPECT_EQ(Parameters(model).at("conv2d_12.weight"), Shape({128, 128, 3, 3}));
  EXPECT_EQ(
      Parameters(Expanded("template { matlab_cifar { width: 4 depth: 1 } }", kCifar)).at("conv2d_3.weight"),
      Shape({16, 8, 3, 3}));
}

TEST(ModelTemplateTest, MiniGptGivesEachPositionTheNextToken) {
  const v1::Model model = Expanded("template { mini_gpt { depth: 2 width: 8 heads: 2 dropout: 0.1 } }",
                                   {.sample = Shape({16}), .outputs = 11});
  EXPECT_EQ(OutputShape(model), Shape({16, 11}));
  const std::map<std::string, Shape> parameters = Parameters(model, DType::kInt32);
  EXPECT_EQ(parameters.at("token_embedding.weight"), Shape({11, 8}));
  EXPECT_EQ(parameters.at("block_2.feed_forward.wide.weight"), Shape({32, 8}));
  const int64_t block = 16 + (3 * 64 + 24) + (64 + 8) + 16 + (256 + 32) + (256 + 8);
  EXPECT_EQ(Count(parameters), 11 * 8 + 16 * 8 + 2 * block + 16 + (11 * 8 + 11));

  std::vector<FieldViolation> found =
      Violations("template { mini_gpt { width: 10 } }", {.sample = Shape({16}), .outputs = 11});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "template.mini_gpt.heads");
  found = Violations("template { mini_gpt {} }", kMnist);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].description, HasSubstr("takes sequences of tokens"));
}

TEST(ModelTemplateTest, MlpTakesAnySamples) {
  EXPECT_EQ(
      Parameters(Expanded("template { mlp {} }", {.sample = Shape({13}), .outputs = 1})).at("dense_1.weight"),
      Shape({128, 13}));
  const v1::Model model = Expanded("input { shape: 4 } template { mlp { units: [5, 6, 7] } }", kMnist);
  EXPECT_EQ(Parameters(model).at("dense_1.weight"), Shape({5, 4}));
  EXPECT_EQ(model.layers_size(), 4);
}

// Returns the data of a table with columns of categories with so many inputs, one behind the other.
TemplateData TableOf(const std::vector<int64_t>& inputs) {
  std::vector<v1::EmbeddedColumn> columns;
  int64_t first = 0;
  for (const int64_t count : inputs) {
    v1::EmbeddedColumn& column = columns.emplace_back();
    column.set_name(absl::StrCat("c", columns.size()));
    column.set_first_input(first);
    column.set_inputs(count);
    first += count;
  }
  return {.sample = Shape({first}), .outputs = 2, .category_columns = std::move(columns)};
}

TEST(ModelTemplateTest, EmbedCategoriesTakesTheColumnsWithManyInputs) {
  const v1::Model model =
      Expanded("template { mlp { embed_categories {} units: 5 } }", TableOf({10, 11, 4, 200}));
  EXPECT_FALSE(TakesCategoryColumns(model));
  EXPECT_EQ(OutputShape(model), Shape({2}));
  ASSERT_EQ(model.layers_size(), 3);
  const v1::EmbedCategories& embed = model.layers(0).embed_categories();
  EXPECT_EQ(embed.above(), 10);
  ASSERT_EQ(embed.columns_size(), 2);
  EXPECT_EQ(embed.columns(0).name(), "c2");
  EXPECT_EQ(embed.columns(0).first_input(), 10);
  EXPECT_EQ(embed.columns(0).inputs(), 11);
  EXPECT_EQ(embed.columns(0).dimension(), 6);
  EXPECT_EQ(embed.columns(1).first_input(), 25);
  EXPECT_EQ(embed.columns(1).dimension(), 50);
  const std::map<std::string, Shape> parameters = Parameters(model);
  EXPECT_EQ(parameters.at("embed_categories_1.c2.weight"), Shape({6, 11}));
  EXPECT_EQ(parameters.at("embed_categories_1.c4.weight"), Shape({50, 200}));
  // 10 and 4 inputs stay.
  EXPECT_EQ(parameters.at("dense_1.weight"), Shape({5, 10 + 6 + 4 + 50}));

  // Layers in place of a template. The input follows from the table.
  const std::string layers =
      "layers { embed_categories { above: 3 dimension: 7 } } layers { dense { units: 2 } }";
  EXPECT_TRUE(TakesCategoryColumns(FromText<v1::Model>(layers)));
  const v1::Model plain = Expanded(layers, TableOf({3, 4}));
  EXPECT_EQ(OutputShape(plain), Shape({2}));
  ASSERT_EQ(plain.input().shape_size(), 1);
  EXPECT_EQ(plain.input().shape(0), 7);
  ASSERT_EQ(plain.layers(0).embed_categories().columns_size(), 1);
  EXPECT_EQ(plain.layers(0).embed_categories().columns(0).dimension(), 7);
  // Given columns stay.
  const std::string given =
      "input { shape: 9 } layers { embed_categories { columns { name: 'c9' inputs: 2 dimension: 1 } } }";
  EXPECT_FALSE(TakesCategoryColumns(FromText<v1::Model>(given)));
  EXPECT_EQ(Expanded(given, TableOf({20})).layers(0).embed_categories().columns(0).name(), "c9");
}

TEST(ModelTemplateTest, EmbedCategoriesNeedsColumnsOfATable) {
  const auto expect = [](const TemplateData& data, const std::string& part) {
    for (const auto& [text, field] :
         {std::pair("layers { embed_categories {} }", "layers[0].embed_categories"),
          {"template { mlp { embed_categories {} } }", "template.mlp.embed_categories"}}) {
      const std::vector<FieldViolation> found = Violations(text, data);
      ASSERT_EQ(found.size(), 1u) << text;
      EXPECT_EQ(found[0].field, field);
      EXPECT_THAT(found[0].description, HasSubstr(part));
    }
  };
  expect(TableOf({3, 8, 4}), "more than 10 inputs, but the largest column of categories, 'c2', has 8");
  expect({.sample = Shape({4}), .outputs = 2, .category_columns = std::vector<v1::EmbeddedColumn>()},
         "needs a table with a column of categories, but the data set has none");
  expect({.sample = Shape({4}), .outputs = 2}, "no table is given");
}

TEST(ModelTemplateTest, NamesWhatIsWrong) {
  std::vector<FieldViolation> found = Violations("template { lenet { width: 0 } }", kMnist);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "template.lenet.width");
  EXPECT_THAT(found[0].description, HasSubstr("is 0; it must be above 0"));

  found = Violations("template { mlp { units: [4, 0] dropout: 1 } }", kMnist);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].field, "template.mlp.dropout");
  EXPECT_EQ(found[1].field, "template.mlp.units[1]");

  found = Violations("template { resnet18 {} }", {.sample = Shape({13}), .outputs = 2});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "template.resnet18");
  EXPECT_THAT(found[0].description, HasSubstr("samples are [13]"));

  // Channels last, as in other frameworks.
  for (const Shape& sample : {Shape({32, 32, 3}), Shape({28, 28, 1}), Shape({64, 48, 4})}) {
    found = Violations("template { resnet18 {} }", {.sample = sample, .outputs = 10});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].field, "template.resnet18");
    EXPECT_THAT(found[0].description,
                HasSubstr("which looks like [height, width, channels]; give dataset.npy.layout: nhwc"));
  }
  v1::Model asked = FromText<v1::Model>("input { shape: [32, 32, 3] } template { resnet18 {} }");
  EXPECT_TRUE(ExpandTemplate({.sample = Shape({32, 32, 3}), .outputs = 10}, &asked).ok());
  EXPECT_FALSE(LooksChannelsLast(Shape({3, 32, 32})));
  EXPECT_FALSE(LooksChannelsLast(Shape({64, 4, 4})));

  found = Violations("template { lenet {} }", {.sample = Shape({1, 8, 8}), .outputs = 2});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].field, "template.lenet");
  EXPECT_THAT(found[0].description, HasSubstr("does not take samples [1, 8, 8]"));

  found = Violations("template { lenet {} } layers { flatten {} }", kMnist);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "layers");

  found = Violations("template { classes: -1 lenet {} }", kMnist);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "template.classes");

  found = Violations("template {}", kMnist);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "template");
}

}  // namespace
}  // namespace tandem
