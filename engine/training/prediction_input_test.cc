#include "engine/training/prediction_input.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/base/testing/from_text.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainedModel Model(const std::string& spec, SampleType type) {
  TrainedModel model;
  model.spec = FromText<v1::JobSpec>(spec);
  model.trained_on.sample_type = type;
  return model;
}

TrainedModel Images() { return Model("model { input { shape: [1, 2, 3] } }", SampleType::kBytes); }
TrainedModel Rows() { return Model("model { input { shape: 3 } }", SampleType::kFloats); }

v1::PredictInput Csv(const std::string& text) {
  v1::PredictInput input;
  input.set_csv(text);
  return input;
}

v1::PredictInput Npy(const std::string& type, const std::string& shape, const std::string& data,
                     const std::string& fortran = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  v1::PredictInput input;
  input.set_npy(std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() % 256) +
                static_cast<char>(header.size() / 256) + header + data);
  return input;
}

// A grey PNG with 2 rows of 3 pixels, from 0 to 250 in steps of 50.
v1::PredictInput GreyPng() {
  static constexpr unsigned char kPng[] = {
      0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
      0x52, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0xb8,
      0x1f, 0x39, 0xc6, 0x00, 0x00, 0x00, 0x10, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60,
      0x30, 0x4a, 0x61, 0x98, 0x76, 0xe2, 0x17, 0x00, 0x07, 0x74, 0x02, 0xef, 0x54, 0xc2, 0x30,
      0xdb, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  v1::PredictInput input;
  input.set_image(std::string(reinterpret_cast<const char*>(kPng), sizeof(kPng)));
  return input;
}

absl::StatusOr<Tensor> Read(const v1::PredictInput& input, const TrainedModel& model) {
  std::vector<std::string> notices;
  return ReadPredictInput(input, model, &notices);
}

std::string FaultOf(const v1::PredictInput& input, const TrainedModel& model) {
  const absl::Status status = Read(input, model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(PredictionInputTest, ReadsTables) {
  auto read = Read(Csv("a,b,c\n1, 2.5,-3\r\n\n4,5,6"), Rows());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({2, 3}));
  EXPECT_THAT(read->data<float>(), ElementsAre(1, 2.5, -3, 4, 5, 6));
  read = Read(Csv("0,1,2,3,4,255\n"), Images());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({1, 1, 2, 3}));
  EXPECT_THAT(read->data<uint8_t>(), ElementsAre(0, 1, 2, 3, 4, 255));

  EXPECT_THAT(FaultOf(Csv("1,2,3\n4,5\n"), Rows()), HasSubstr("row 2 has 2 columns, but the model takes 3"));
  EXPECT_THAT(FaultOf(Csv("1,2,3\n4,x,6\n"), Rows()), HasSubstr("row 2: column 2 holds \"x\""));
  EXPECT_THAT(FaultOf(Csv("a,b,c\n"), Rows()), HasSubstr("no row of numbers"));
  // A first row with a number does not name columns.
  EXPECT_THAT(FaultOf(Csv("1,x,3\n4,5,6\n"), Rows()), HasSubstr("row 1: column 2 holds \"x\""));
  EXPECT_THAT(FaultOf(Csv("1,2,nan\n"), Rows()), HasSubstr("has the number nan; numbers must be finite"));
  EXPECT_THAT(FaultOf(Csv("1,2,1e300\n"), Rows()), HasSubstr("has the number 1e+300"));
  EXPECT_THAT(FaultOf(Csv("1,2,\"3\n"), Rows()), HasSubstr("row 1: field 3 begins with a quote"));
  read = Read(Csv("\xEF\xBB\xBF\"a\",\"b, or c\",d\n1,\"2\",3\n"), Rows());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->data<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(FaultOf(Csv("0,1,2,3,4,256\n"), Images()), HasSubstr("has the number 256"));
  EXPECT_THAT(FaultOf(Csv("0,1,2,3,4,0.5\n"), Images()), HasSubstr("whole numbers from 0 to 255"));
}

TEST(PredictionInputTest, MatchesColumnsByTheirNames) {
  TrainedModel model = Rows();
  model.trained_on.feature_names = {"height", "width, in m", "age"};
  const auto expect = [&](const std::string& text) {
    const auto read = Read(Csv(text), model);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape(), Shape({2, 3}));
    EXPECT_THAT(read->data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  };
  expect("height,\"width, in m\",age\n1,2,3\n4,5,6\n");
  // In another order, and with more columns, such as the target.
  expect("price,age, height ,\"width, in m\"\nten,3,1,2\n,6,4,5\n");
  // Without names, columns have the order of the training table.
  expect("1,2,3\n4,5,6\n");
  EXPECT_THAT(FaultOf(Csv("a,height,c\n1,2,3\n"), model),
              HasSubstr("row 1 names no columns \"width, in m\", \"age\""));
  EXPECT_THAT(FaultOf(Csv("height,age,age,\"width, in m\"\n1,2,3,4\n"), model),
              HasSubstr("there are 2 columns \"age\""));
  EXPECT_THAT(FaultOf(Csv("age,height,\"width, in m\"\n1,2\n"), model),
              HasSubstr("row 2 has 2 columns, but the first one names 3"));
  EXPECT_THAT(FaultOf(Csv("age,height,\"width, in m\"\n1,2,x\n"), model),
              HasSubstr("row 2: column \"width, in m\" holds \"x\""));
  EXPECT_THAT(FaultOf(Csv("age,height,\"width, in m\"\n"), model), HasSubstr("no row of numbers"));
}

// A model accepts its own training table.
TEST(PredictionInputTest, TablesAreReadAsInTraining) {
  TrainedModel model = Rows();
  model.trained_on.feature_names = {"a", "b", "c"};
  model.trained_on.table = TrainedOn::Table{.delimiter = ';', .columns = 4, .feature_positions = {2, 0, 1}};
  const auto expect = [&](const std::string& text) {
    SCOPED_TRACE(text);
    const auto read = Read(Csv(text), model);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape(), Shape({2, 3}));
    EXPECT_THAT(read->data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  };
  expect("b;c;a;y\n2;3;1;dog\n5;6;4;cat\n");
  expect("a;b;c\n1;2;3\n4;5;6\n");
  // Without names: the features alone, or all columns of the training table.
  expect("1;2;3\n4;5;6\n");
  expect("2;3;1;dog\n5;6;4;cat\n");
  // Commas are also accepted.
  expect("a,b,c\n1,2,3\n4,5,6\n");
  expect("1,2,3\n4,5,6\n");
  EXPECT_THAT(FaultOf(Csv("1;2\n"), model),
              HasSubstr("row 1 has 2 columns, but the model takes 3 numbers a sample, [3], or the 4 of its "
                        "training table; columns are separated by ';'"));
  EXPECT_THAT(FaultOf(Csv("1;2;3\n2;3;1;dog\n"), model),
              HasSubstr("row 2 has 4 columns, but those before have 3"));
  model.trained_on.table->delimiter = '\t';
  expect("b\tc\ta\ty\n2\t3\t1\tdog\n5\t6\t4\tcat\n");
  EXPECT_THAT(FaultOf(Csv("1;2;3\n"), model), HasSubstr("separated by a tab"));
}

// pandas names columns by numbers if they have no names.
TEST(PredictionInputTest, NamesMayBeNumbers) {
  TrainedModel model = Rows();
  model.trained_on.feature_names = {"0", "1", "2"};
  for (const char* text : {"0,1,2\n1,2,3\n4,5,6\n", "2,0,1,3\n3,1,2,9\n6,4,5,9\n", "1,2,3\n4,5,6\n"}) {
    SCOPED_TRACE(text);
    const auto read = Read(Csv(text), model);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape(), Shape({2, 3}));
    EXPECT_THAT(read->data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST(PredictionInputTest, NamesAreTheSameInTwoEncodings) {
  TrainedModel model = Rows();
  model.trained_on.feature_names = {
      "gr\xC3\xB6\xC3\x9F"
      "e",
      "b", "c"};
  for (const std::string& name : {std::string("gr\xF6\xDF"
                                              "e"),
                                  model.trained_on.feature_names[0]}) {
    const auto read = Read(Csv("c,b," + name + "\n3,2,1\n"), model);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->data<float>(), ElementsAre(1, 2, 3));
  }
}

TEST(PredictionInputTest, TokensAreOfTheVocabulary) {
  const TrainedModel model =
      Model("model { input { shape: 3 } layers { embedding { vocabulary_size: 5 dimension: 2 } } }",
            SampleType::kTokens);
  const auto read = Read(Csv("0,4,2\n"), model);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->data<int32_t>(), ElementsAre(0, 4, 2));
  EXPECT_THAT(FaultOf(Csv("0,5,2\n"), model), HasSubstr("takes tokens: whole numbers from 0 to 4"));
}

TEST(PredictionInputTest, ReadsArrays) {
  auto read = Read(Npy("|u1", "(1, 2, 3)", "abcdef"), Images());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({1, 1, 2, 3}));
  EXPECT_THAT(read->data<uint8_t>(), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  read = Read(Npy("|u1", "(2, 3)", "abcdef"), Rows());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({2, 3}));
  EXPECT_THAT(read->data<float>(), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));

  // float16 in big-endian Fortran order: 1, 2, 3 and 4, 5, 6.
  read = Read(Npy(">f2", "(2, 3)", std::string("\x3c\0\x44\0\x40\0\x45\0\x42\0\x46\0", 12), "True"), Rows());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  // A model that was trained with channels last accepts such arrays, and [channels, height, width].
  TrainedModel last = Model("model { input { shape: [3, 1, 2] } }", SampleType::kBytes);
  last.trained_on.layout = v1::ARRAY_LAYOUT_NHWC;
  for (const auto& [extents, elements] : {std::pair("(1, 2, 3)", "\1\2\3\4\5\6"),
                                          {"(1, 1, 2, 3)", "\1\2\3\4\5\6"},
                                          {"(3, 1, 2)", "\1\4\2\5\3\6"}}) {
    read = Read(Npy("|u1", extents, elements), last);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape(), Shape({1, 3, 1, 2}));
    EXPECT_THAT(read->data<uint8_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
  }
  // Grey images need no dimension of channels.
  read = Read(Npy("|u1", "(1, 2, 3)", "abcdef"), Images());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({1, 1, 2, 3}));
  read = Read(Npy("|u1", "(2, 3)", "abcdef"), Images());
  ASSERT_TRUE(read.ok()) << read.status();

  const std::string shape = FaultOf(Npy("|u1", "(2, 2)", "abcd"), Rows());
  EXPECT_THAT(shape, HasSubstr("[2, 2]"));
  EXPECT_THAT(shape, HasSubstr("[3]"));
  EXPECT_NE(FaultOf(Npy("<c8", "(3,)", std::string(24, 'a')), Rows()), "");
  EXPECT_NE(FaultOf(Npy("|u1", "(3,)", "ab"), Rows()), "");
}

TEST(PredictionInputTest, ReadsImages) {
  auto read = Read(GreyPng(), Images());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({1, 1, 2, 3}));
  EXPECT_THAT(read->data<uint8_t>(), ElementsAre(0, 50, 100, 150, 200, 250));

  // A grey image for a model with three channels has equal channels, and is resized if the job's images were.
  read = Read(GreyPng(), Model("model { input { shape: [3, 2, 3] } }", SampleType::kBytes));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->data<uint8_t>()[6], 0);
  EXPECT_EQ(read->data<uint8_t>()[17], 250);
  TrainedModel scaled = Model("model { input { shape: [1, 4, 6] } }", SampleType::kBytes);
  scaled.trained_on.resize = v1::IMAGE_RESIZE_STRETCH;
  read = Read(GreyPng(), scaled);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({1, 1, 4, 6}));

  // Images of another size are stretched if the job's images were not resized.
  read = Read(GreyPng(), Model("model { input { shape: [1, 4, 6] } }", SampleType::kBytes));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), Shape({1, 1, 4, 6}));
  EXPECT_THAT(FaultOf(GreyPng(), Rows()), HasSubstr("is an image, but the model takes samples [3]"));
  EXPECT_THAT(FaultOf(GreyPng(), Model("model { input { shape: [1, 2, 3] } }", SampleType::kFloats)),
              HasSubstr("is an image of bytes, but the model was trained on floats"));
  v1::PredictInput cut = GreyPng();
  cut.mutable_image()->resize(50);
  EXPECT_NE(FaultOf(cut, Images()), "");
}

TEST(PredictionInputTest, RawRowsArePreparedAsInTraining) {
  TrainedModel model = Rows();
  model.trained_on.feature_names = {"age", "port"};
  model.trained_on.table = TrainedOn::Table{.delimiter = ';', .columns = 3, .feature_positions = {0, 2}};
  v1::TablePreparation& preparation = model.trained_on.preparation.emplace();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "decimal_comma: true "
      "columns { name: 'age' kind: COLUMN_KIND_NUMBER missing_indicator: true "
      "          numbers { fill: 30 mean: 20 deviation: 10 } } "
      "columns { name: 'port' kind: COLUMN_KIND_CATEGORY categories: ['C', 'S'] category_inputs: 2 }",
      &preparation));
  const auto expect = [&](const std::string& text) {
    const auto read = Read(Csv(text), model);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape(), Shape({2, 5}));
    EXPECT_THAT(read->data<float>(), ElementsAre(-0.5, 0, 0, 1, 0, 1, 1, 0, 0, 1));
  };
  expect("age;port\n15;S\nNA;Q\n");
  expect("name;port;age\nAnn;S;15,0\n\"B; C\";Q;\n");
  // Another delimiter, and no names: the features, or the columns of the training table.
  expect("sep=|\nport|age\nS|15\nQ|\n");
  // Commas between cells leave points for the decimals.
  expect("age,port\n15.000,S\nNA,Q\n");
  expect("age,port\n\"15,0\",S\nNA,Q\n");
  EXPECT_THAT(FaultOf(Csv("age;port\n15.000;S\n"), model), HasSubstr("remove points between thousands"));
  expect("15;S\n;Q\n");
  expect("15;yes;S\n;no;Q\n");
  std::vector<std::string> notices;
  ASSERT_TRUE(ReadPredictInput(Csv("age;port\n15;S\n;NA\n"), model, &notices).ok());
  EXPECT_THAT(notices, IsEmpty());
  ASSERT_TRUE(ReadPredictInput(Csv("port;age\n s;15\nQ;2\nC;3\n"), model, &notices).ok());
  EXPECT_THAT(
      notices,
      ElementsAre("The model knows no category 's' of column 'port'. 2 cells count as other categories."));
  EXPECT_THAT(FaultOf(Csv("age;harbour\n15;S\n"), model),
              HasSubstr("row 1 names no column 'port', by which the model was trained"));
  EXPECT_THAT(FaultOf(Csv("age;port\nold;S\n"), model),
              HasSubstr("row 2, column 'age' is 'old'; it must be a finite number"));
  EXPECT_THAT(FaultOf(Csv("age;port\n15\n"), model),
              HasSubstr("row 2 has 1 columns, but the first row has 2"));
  EXPECT_THAT(FaultOf(Csv("1;2;3;4\n"), model), HasSubstr("give a table with the columns 'age', 'port'"));
  EXPECT_THAT(FaultOf(Csv("age;port\n"), model), HasSubstr("no rows but the one that names its columns"));
  EXPECT_THAT(FaultOf(Npy("<f4", "(3,)", std::string(12, '\0')), model), HasSubstr("give a CSV table"));
}

}  // namespace
}  // namespace tandem
