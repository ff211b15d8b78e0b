#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Matches data to the names of a model. All expected values are computed by hand.
class MatchTest : public ::testing::Test {
 protected:
  v1::DatasetSpec Spec(const std::string& text) { return FromText<v1::DatasetSpec>(text); }
  v1::DatasetSpec Table(const std::string& table, const std::string& more = "") {
    v1::DatasetSpec spec = Spec("csv { " + more + " }");
    spec.mutable_csv()->set_train(WriteFile(folder_ + "/table.csv", table));
    return spec;
  }
  v1::DatasetSpec Text(const std::string& text) {
    v1::DatasetSpec spec = Spec("text { sequence_length: 2 }");
    spec.mutable_text()->set_train(WriteFile(folder_ + "/text.txt", text));
    return spec;
  }
  v1::DatasetSpec Labels(const std::vector<int64_t>& labels, const std::string& more = "") {
    v1::DatasetSpec spec = Spec("npy {} " + more);
    std::string bytes, inputs;
    for (const int64_t label : labels) bytes += Little(label, 8);
    for (size_t i = 0; i < labels.size(); ++i) inputs += Little(0, 4);
    const std::string count = absl::StrCat(labels.size());
    spec.mutable_npy()->mutable_train_inputs()->set_path(
        WriteFile(folder_ + "/x.npy", Npy("<f4", "(" + count + ", 1)", inputs)));
    spec.mutable_npy()->mutable_train_targets()->set_path(
        WriteFile(folder_ + "/y.npy", Npy("<i8", "(" + count + ",)", bytes)));
    return spec;
  }
  OpenedDataset Open(const v1::DatasetSpec& spec, const DataNames& model) {
    absl::StatusOr<OpenedDataset> opened = OpenDataset(spec, &model);
    EXPECT_TRUE(opened.ok()) << opened.status();
    const absl::StatusOr<DatasetInfo> described = DescribeDataset(spec, &model);
    EXPECT_TRUE(described.ok()) << described.status();
    if (!opened.ok() || !described.ok()) return OpenedDataset();
    EXPECT_EQ(described->class_names, opened->info.class_names);
    EXPECT_EQ(described->classes, opened->info.classes);
    EXPECT_EQ(described->class_labels, opened->info.class_labels);
    return *std::move(opened);
  }
  void ExpectFault(const v1::DatasetSpec& spec, const DataNames& model, const std::string& field,
                   const std::string& part) {
    for (const absl::Status& status :
         {DescribeDataset(spec, &model).status(), OpenDataset(spec, &model).status()}) {
      const std::vector<FieldViolation> found = GetFieldViolations(status);
      ASSERT_EQ(found.size(), 1u) << status;
      EXPECT_EQ(found[0].field, field);
      EXPECT_THAT(found[0].description, HasSubstr(part));
    }
  }
  const std::string folder_ = FreshFolder();
};

TEST_F(MatchTest, ColumnsAreMatchedByName) {
  const DataNames model = {.features = {"a", "b"}, .targets = {"y"}};
  for (const char* table : {"a,b,y\n1,2,3\n4,5,6\n", "b,a,y\n2,1,3\n5,4,6\n", "y,b,a\n3,2,1\n6,5,4\n",
                            "id,b,note,a,y\nx,2,,1,3\nz,5,-,4,6\n"}) {
    SCOPED_TRACE(table);
    const OpenedDataset opened = Open(Table(table), model);
    EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 2, 4, 5));
    EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(3, 6));
    EXPECT_THAT(opened.info.feature_names, ElementsAre("a", "b"));
    EXPECT_THAT(opened.info.notices, IsEmpty());
  }
  ExpectFault(Table("a,c,y\n1,2,3\n"), model, "csv.feature_columns",
              "table.csv has no column 'b', which is a feature of the model; it has 'a', 'c', 'y'");
  ExpectFault(Table("a,b,z\n1,2,3\n"), model, "csv.target_columns",
              "has no column 'y', which is a target of the model");
  ExpectFault(Table("a,b,b,y\n1,2,2,3\n"), model, "csv.feature_columns", "has 2 columns 'b'");
  ExpectFault(Table("a,b,y\n1,2,3\n", "feature_columns: 'a'"), model, "csv.feature_columns",
              "leave out 'b', which is a feature of the model");
  ExpectFault(Table("a,b,y\n1,2,3\n", "target_columns: 'a'"), model, "csv.target_columns",
              "have 'a', which is a feature of the model");
}

TEST_F(MatchTest, ATargetIsMatchedByNameUnlessItIsNamed) {
  const DataNames model = {.features = {"a"}, .targets = {"y", "z"}};
  for (const char* more : {"", "target_columns: ['z', 'y']"}) {
    const OpenedDataset opened = Open(Table("z,a,y\n3,1,2\n6,4,5\n", more), model);
    EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(2, 3, 5, 6));
  }
  ExpectFault(Table("z,a,x\n3,1,2\n", "target_columns: ['z', 'x']"), model, "csv.target_columns",
              "are 'z', 'x', but the model's targets are 'y', 'z'");
  const OpenedDataset opened =
      Open(Table("a,price\n1,2\n", "target_columns: 'price'"), {.features = {"a"}, .targets = {"y"}});
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(2));
  EXPECT_THAT(opened.info.notices,
              ElementsAre("The target is the column 'price', in place of the model's 'y'."));
}

TEST_F(MatchTest, ATableWithoutNamesIsMatchedByPosition) {
  const OpenedDataset opened =
      Open(Table("1,2,3\n", "header: false"), {.features = {"a", "b"}, .targets = {"y"}});
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 2));
  ASSERT_EQ(opened.info.notices.size(), 1u);
  EXPECT_THAT(opened.info.notices[0], HasSubstr("by position: the features are taken for 'a', 'b'"));
}

// Arrays and tables name columns differently, and numbers may mean anything.
TEST_F(MatchTest, DataOrModelsWithoutNamesAreMatchedByPosition) {
  const DataNames model = {.features = {"a"}, .targets = {"y"}};
  OpenedDataset opened = Open(Labels({0, 1}), model);
  EXPECT_THAT(opened.info.notices,
              ElementsAre("The data do not name their columns, so that they are matched to the model's by "
                          "position: the features are taken for 'a'."));
  EXPECT_EQ(opened.info.feature_names, model.features);
  EXPECT_EQ(opened.info.target_names, model.targets);
  opened = Open(Table("b,a,y\n1,2,3\n"), {});
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 2));
  EXPECT_THAT(
      opened.info.notices,
      ElementsAre("The model does not name its columns, so that those of the data are matched to them "
                  "by position: 'b', 'a'."));
}

TEST_F(MatchTest, NumbersAColumnAreNotGivenToOthers) {
  const DataNames model = {.features = {"a", "b"}, .targets = {"y"}};
  const auto with_means = [](v1::DatasetSpec spec) {
    spec.mutable_normalization()->add_mean(1);
    spec.mutable_normalization()->add_mean(2);
    return spec;
  };
  const std::string part =
      "has a number a column, but the model takes the columns in another order, 'a', 'b'; give "
      "csv.feature_columns and the numbers in this order";
  ExpectFault(with_means(Table("b,a,y\n2,1,3\n")), model, "normalization", part);
  ExpectFault(with_means(Table("a,b,y\n1,2,3\n", "feature_columns: ['b', 'a']")), model, "normalization",
              part);
  for (const auto& [table, more] :
       {std::pair("a,id,b,y\n1,7,2,3\n", ""), {"b,a,y\n2,1,3\n", "feature_columns: ['a', 'b']"}}) {
    EXPECT_THAT(Open(with_means(Table(table, more)), model).info.normalization.mean, ElementsAre(1, 2));
  }
}

TEST_F(MatchTest, NamesAreTheSameInTwoEncodings) {
  const DataNames model = {.features = {"gr\xC3\xB6\xC3\x9F"
                                        "e",
                                        "b"},
                           .targets = {"y"}};
  const OpenedDataset opened = Open(Table("b,gr\xF6\xDF"
                                          "e,y\n2,1,3\n"),
                                    model);
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 2));
  EXPECT_EQ(opened.info.feature_names, model.features);
}

TEST_F(MatchTest, ClassesOfATableAreMatchedByName) {
  const DataNames model = {.features = {"x"}, .targets = {"kind"}, .classes = {"bird", "cat", "dog"}};
  OpenedDataset opened = Open(Table("x,kind\n1,dog\n2,cat\n"), model);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(2, 1));
  EXPECT_THAT(opened.info.class_names, ElementsAre("bird", "cat", "dog"));
  EXPECT_EQ(opened.info.classes, 3);
  // Data with a single class.
  EXPECT_THAT(Targets<int32_t>(*Open(Table("x,kind\n1,dog\n"), model).train), ElementsAre(2));
  ExpectFault(Table("x,kind\n1,dog\n2,elk\n"), model, "csv.train",
              "row 3, column 'kind' is 'elk', a class that the model does not know");
  v1::DatasetSpec validated = Table("x,kind\n1,dog\n2,cat\n");
  validated.mutable_csv()->set_validation(WriteFile(folder_ + "/other.csv", "kind,x\nbird,7\n"));
  EXPECT_THAT(Targets<int32_t>(*Open(validated, model).validation), ElementsAre(0));
  // Names that are numbers are names.
  const DataNames numbers = {.features = {"x"}, .targets = {"kind"}, .classes = {"10", "7", "a"}};
  EXPECT_THAT(Targets<int32_t>(*Open(Table("x,kind\n1,7\n2,10\n"), numbers).train), ElementsAre(1, 0));
  // Labels of a model whose names came from elsewhere.
  opened = Open(Table("x,kind\n1,2\n2,0\n"), model);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(2, 0));
  EXPECT_THAT(opened.info.class_names, ElementsAre("bird", "cat", "dog"));
  ASSERT_EQ(opened.info.notices.size(), 1u);
  EXPECT_THAT(opened.info.notices[0], HasSubstr("matched to the model's by number: 0 is 'bird'"));
}

TEST_F(MatchTest, ValidationTablesHaveColumnsInAnyOrder) {
  v1::DatasetSpec spec = Table("a,b,y\n1,2,3\n");
  spec.mutable_csv()->set_validation(WriteFile(folder_ + "/other.csv", "y,more,b,a\n6,x,5,4\n"));
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Samples<float>(*opened->validation), ElementsAre(4, 5));
  EXPECT_THAT(Targets<float>(*opened->validation), ElementsAre(6));
}

TEST_F(MatchTest, CharactersAreMatchedToTheVocabulary) {
  const DataNames model = {.classes = {"a", "b", "c", "d", "e"}};
  const OpenedDataset opened = Open(Text("bcdb"), model);
  EXPECT_THAT(Samples<int32_t>(*opened.train), ElementsAre(1, 2));
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(2, 3));
  EXPECT_EQ(opened.info.classes, 5);
  ExpectFault(Text("bcdf"), model, "text.train",
              "has the character 'f' (U+0066) at position 3, which the model does not have");
  v1::DatasetSpec bytes = Text("bcdb");
  bytes.mutable_text()->set_tokens(v1::TEXT_TOKENS_BYTES);
  ExpectFault(bytes, model, "text.tokens", "are bytes, but the model's are characters");
  ExpectFault(Text("bcdb"), {}, "text.tokens", "give TEXT_TOKENS_BYTES");
  // Validation text may have characters that the training text lacks.
  v1::DatasetSpec spec = Text("abcabc");
  spec.mutable_text()->set_validation(WriteFile(folder_ + "/other.txt", "eda"));
  EXPECT_THAT(Samples<int32_t>(*Open(spec, model).validation), ElementsAre(4, 3));
}

TEST_F(MatchTest, NamesBesideNumbersAreMatched) {
  const DataNames model = {.classes = {"ant", "bee", "cow"}};
  OpenedDataset opened = Open(Labels({0, 1}, "class_names: ['cow', 'ant']"), model);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(2, 0));
  EXPECT_EQ(opened.info.classes, 3);
  ExpectFault(Labels({0, 1}, "class_names: ['cow', 'elk']"), model, "class_names",
              "has the class 'elk', which the model does not know; it knows 'ant', 'bee', 'cow'");
  // Without names, numbers are labels.
  opened = Open(Labels({1, 0}), model);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(1, 0));
  EXPECT_EQ(opened.info.classes, 3);
  EXPECT_EQ(opened.info.notices.size(), 1u);
  opened = Open(Labels({1, 0}, "class_names: ['x', 'y']"), {});
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(1, 0));
}

TEST_F(MatchTest, LabelsAreMatchedToClassesThatNumbersName) {
  // The order of sorted folders.
  const DataNames model = {.classes = {"0", "1", "10", "2"}};
  const OpenedDataset opened = Open(Labels({2, 0, 1}), model);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(3, 0, 1));
  EXPECT_EQ(opened.info.classes, 4);
  EXPECT_THAT(opened.info.notices, IsEmpty());
  ExpectFault(Labels({3, 0, 1}), model, "class_names",
              "has the class '3', which the model does not know; it knows '0', '1', '10', '2'");
}

TEST_F(MatchTest, AModelWithoutNamesKnowsNumbers) {
  // As text, "10" comes before "2".
  std::string table = "x,kind\n1,2\n2,10\n3,a\n";
  const DataNames model = {.features = {"x"}};
  ExpectFault(Table(table, "targets: TARGET_KIND_CLASS"), model, "csv.train",
              "has the classes '10', '2', 'a', but the model's classes have no names");
  const OpenedDataset opened = Open(Table("x,kind\n1,2\n2,10\n", "targets: TARGET_KIND_CLASS"), model);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(2, 10));
}

// Settings such as class_weights count the data's classes first, and then the model's others.
TEST_F(MatchTest, ClassesKeepTheDatasOrderForSettings) {
  const DataNames model = {.features = {"x"}, .targets = {"kind"}, .classes = {"dog", "bird", "ant", "cat"}};
  const auto labels = [&](const v1::DatasetSpec& spec, const DataNames& model) {
    return Open(spec, model).info.class_labels;
  };
  EXPECT_THAT(labels(Table("x,kind\n1,dog\n2,cat\n"), model), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(labels(Table("x,kind\n1,dog\n2,ant\n3,cat\n4,bird\n"), model), ElementsAre(2, 1, 3, 0));
  EXPECT_THAT(labels(Table("x,kind\n1,b\n2,a\n"), {.features = {"x"}, .classes = {"a", "b", "c"}}),
              IsEmpty());
  // Numbers keep their order, although "10" comes before "9" in a text.
  const DataNames numbers = {.features = {"x"}, .targets = {"kind"}, .classes = {"10", "9", "0"}};
  EXPECT_THAT(labels(Table("x,kind\n1,10\n2,9\n"), numbers), ElementsAre(1, 0, 2));
  EXPECT_THAT(labels(Table("x,kind\n1,10\n2,9\n", "targets: TARGET_KIND_CLASS"), numbers),
              ElementsAre(1, 0, 2));
  // Numbers with a gap count from 0, as without a model.
  const DataNames three = {.features = {"x"}, .targets = {"kind"}, .classes = {"0", "1", "2"}};
  EXPECT_THAT(labels(Table("x,kind\n1,2\n2,0\n", "targets: TARGET_KIND_CLASS"), three), IsEmpty());
  // Labels that are matched by number.
  EXPECT_THAT(labels(Table("x,kind\n1,2\n2,0\n"), model), IsEmpty());
  EXPECT_THAT(labels(Labels({0, 1}), model), IsEmpty());
  EXPECT_THAT(labels(Labels({0, 1}, "class_names: ['cat', 'dog']"), model), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(labels(Labels({2, 0, 1}), {.classes = {"0", "1", "10", "2"}}), ElementsAre(0, 1, 3, 2));
  // Two classes of the data with one name.
  EXPECT_THAT(labels(Labels({0, 1}, "class_names: ['bird', 'bird']"), model), ElementsAre(1, 1, 0, 2, 3));
  // Classes that are taken by position.
  EXPECT_THAT(labels(Labels({0, 1}, "class_names: ['elk', 'ant']"),
                     {.classes = {"ant", "bee"}, .takes_other_outputs = true}),
              IsEmpty());
  EXPECT_THAT(labels(Text("cbcb"), {.classes = {"c", "a", "b"}}), ElementsAre(2, 0, 1));
  // A model whose classes have no names.
  EXPECT_THAT(labels(Table("x,kind\n1,2\n2,10\n", "targets: TARGET_KIND_CLASS"), {.features = {"x"}}),
              IsEmpty());
}

TEST_F(MatchTest, OtherClassesMayBeTakenWithANotice) {
  const DataNames model = {.features = {"x"}, .classes = {"bird", "cat"}, .takes_other_outputs = true};
  OpenedDataset opened = Open(Table("x,kind\n1,elk\n2,cat\n"), model);
  EXPECT_THAT(opened.info.class_names, ElementsAre("cat", "elk"));
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(1, 0));
  ASSERT_EQ(opened.info.notices.size(), 1u);
  EXPECT_THAT(opened.info.notices[0],
              HasSubstr("by position: 0 was 'bird' and is 'cat', 1 was 'cat' and is 'elk'"));
  // Known classes keep their labels.
  opened = Open(Table("x,kind\n1,cat\n"), model);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(1));
  EXPECT_THAT(opened.info.notices, IsEmpty());
  // Numbers become values if no class is known.
  EXPECT_EQ(Open(Table("x,y\n1,0.5\n"), model).info.target_type, TargetKind::kValues);
}

TEST_F(MatchTest, WhatTheModelDoesNotGiveIsNotMatched) {
  const DataNames model = {.features = {"q"},
                           .targets = {"r"},
                           .classes = {"s"},
                           .matches_inputs = false,
                           .matches_outputs = false};
  const OpenedDataset opened = Open(Table("x,kind\n1,elk\n2,cat\n"), model);
  EXPECT_THAT(opened.info.class_names, ElementsAre("cat", "elk"));
}

}  // namespace
}  // namespace tandem
