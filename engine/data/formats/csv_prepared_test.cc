// Tables as people have them: gaps, categories, dates, and other forms of files.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/csv_fixture.h"
#include "engine/data/formats/csv_report.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class PreparedTest : public CsvFixture {
 protected:
  // Two numbers with a gap, a category, a text, and a class.
  const std::string people_ =
      "age,fare,port,name,lived\n10,1,S,Ann B.,no\n30,2,C,Bob C.,yes\n,3,S,Cy D.,no\n20,4,C,Di E.,yes\n";
};

TEST_F(PreparedTest, GapsCategoriesAndTextTrain) {
  const OpenedDataset opened = Open(Spec(people_));
  // age, its indicator, fare, two ports and others.
  EXPECT_EQ(opened.info.shape, Shape({6}));
  EXPECT_THAT(opened.info.class_names, ElementsAre("no", "yes"));
  EXPECT_THAT(opened.info.feature_names, ElementsAre("age", "fare", "port"));
  const std::vector<float> samples = Samples<float>(*opened.train);
  ASSERT_THAT(samples, SizeIs(24));
  EXPECT_THAT(std::vector<float>(samples.begin() + 12, samples.begin() + 18),
              ElementsAre(0, 1, FloatNear(0.4472136F, 1e-6), 0, 1, 0))
      << "the median 20 is the mean too";
  EXPECT_THAT(opened.info.notices, Contains(HasSubstr("many different texts are left out: 'name'")));
  EXPECT_THAT(opened.info.notices,
              Contains(HasSubstr("Of 4 rows, these missing cells are filled: 'age' 1.")));
}

TEST_F(PreparedTest, NoNoticeNamesAColumnThatTheSpecLeavesOut) {
  v1::DatasetSpec spec = Spec(people_);
  for (const char* name : {"name", "fare"}) {
    v1::CsvColumn* column = spec.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(v1::COLUMN_KIND_IGNORED);
  }
  const OpenedDataset opened = Open(spec);
  EXPECT_THAT(opened.info.feature_names, ElementsAre("age", "port"));
  EXPECT_THAT(opened.info.notices, Not(Contains(HasSubstr("left out"))));
}

TEST_F(PreparedTest, AnotherTableIsPreparedLikeTheModels) {
  const OpenedDataset opened = Open(Spec(people_));
  const DataNames model{.features = opened.info.feature_names,
                        .targets = opened.info.target_names,
                        .classes = opened.info.class_names,
                        .preparation = opened.info.preparation};
  const OpenedDataset other = Open(Spec("lived,port,age,fare\nyes,Q,,2\n"), &model);
  EXPECT_THAT(Samples<float>(*other.train), ElementsAre(0, 1, FloatNear(-0.4472136F, 1e-6), 0, 0, 1));
  EXPECT_THAT(Targets<int32_t>(*other.train), ElementsAre(1));
  EXPECT_THAT(other.info.notices, Contains("The model knows no category 'Q' of column 'port'. 1 cell counts "
                                           "as other categories."));
  EXPECT_THAT(Open(Spec(people_), &model).info.notices, Not(Contains(HasSubstr("knows no category"))));
  absl::StatusOr<OpenedDataset> refused = OpenDataset(Spec("lived,port,age,fare\nyes,Q,old,2\n"), &model);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("row 2, column 'age' is 'old'; it must be a finite number"));
  // A model of plain numbers takes no gaps.
  const DataNames plain{.features = {"age", "fare"}, .targets = {"lived"}, .classes = {"no", "yes"}};
  refused = OpenDataset(Spec("age,fare,lived\n,2,no\n1,2,yes\n"), &plain);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("row 2, column 'age' is empty"));
}

TEST_F(PreparedTest, AnotherTableMayGiveItsDecimalMark) {
  const std::string plain = "scaling: NUMBER_SCALING_NONE target_scaling: NUMBER_SCALING_NONE";
  const OpenedDataset trained = Open(Spec("a;b;y\n1,5;2;0\n2,25;3;1\n", plain));
  const DataNames model{.features = {"a", "b"}, .preparation = trained.info.preparation};
  const std::string points = "a;b;y\n75.614;3;0\n1.5;4;1\n";
  EXPECT_THAT(
      std::string(OpenDataset(Spec(points, plain), &model).status().message()),
      HasSubstr("row 2, column 'a' is '75.614'; it must be a finite number (at most 3.4e38; in a table with "
                "decimal commas, remove points between thousands"));
  const OpenedDataset own = Open(Spec(points, plain + " decimal_comma: false"), &model);
  EXPECT_THAT(Samples<float>(*own.train), ElementsAre(75.614F, 3, 1.5F, 4));
  ASSERT_TRUE(own.info.preparation.has_value());
  EXPECT_FALSE(own.info.preparation->decimal_comma());
  // Commas between cells leave points for the decimals, unless cells are quoted.
  const OpenedDataset commas = Open(Spec("a,b,y\n75.614,3,0\n1.5,4,1\n", plain), &model);
  EXPECT_THAT(Samples<float>(*commas.train), ElementsAre(75.614F, 3, 1.5F, 4));
  const OpenedDataset quoted = Open(Spec("a,b,y\n\"75,614\",3,0\n\"1,5\",4,1\n", plain), &model);
  EXPECT_THAT(Samples<float>(*quoted.train), ElementsAre(75.614F, 3, 1.5F, 4));
}

TEST_F(PreparedTest, DataWithoutNamesAreMatchedByPosition) {
  const std::string plain = "scaling: NUMBER_SCALING_NONE target_scaling: NUMBER_SCALING_NONE";
  const OpenedDataset trained = Open(Spec("a,b,y\n1,5,0\n,6,1\n", plain));
  // Names the prepared columns, and the features of the model.
  const auto model_of = [&](const std::string& first, const std::string& second,
                            std::vector<std::string> features) {
    DataNames model{.features = std::move(features), .preparation = trained.info.preparation};
    model.preparation->mutable_columns(0)->set_name(first);
    model.preparation->mutable_columns(1)->set_name(second);
    return model;
  };
  const auto samples = [&](const std::string& table, const DataNames& model) {
    return Samples<float>(*Open(Spec(table, "header: false"), &model).train);
  };
  const auto fault = [&](const std::string& table, const DataNames& model) {
    return std::string(OpenDataset(Spec(table, "header: false"), &model).status().message());
  };
  EXPECT_THAT(samples("7,8,9\n", model_of("a", "b", {"a", "b"})), ElementsAre(7, 0, 8));
  // A number may be a name, but a model without names knows its columns by numbers.
  EXPECT_THAT(samples("7,8,9\n", model_of("2019", "2020", {"2019", "2020"})), ElementsAre(7, 0, 8));
  EXPECT_THAT(samples("7,1,8,9\n", model_of("0", "2", {})), ElementsAre(7, 0, 8));
  // Equal names are no positions, and neither are numbers beyond any table.
  EXPECT_THAT(samples("7,8,9\n", model_of("1", "1", {})), ElementsAre(7, 0, 8));
  EXPECT_THAT(samples("7,8,9\n", model_of("18446744073709551615", "0", {})), ElementsAre(7, 0, 8));

  EXPECT_THAT(fault("7,1,8,9\n", model_of("a", "b", {"a", "b"})),
              HasSubstr("has 4 columns, but the model needs 2, and then the target"));
  DataNames two_targets = model_of("a", "b", {"a", "b"});
  two_targets.targets = {"y", "z"};
  EXPECT_THAT(fault("7,8,9\n", two_targets),
              HasSubstr("has 3 columns, but the model needs 2, and then 2 targets"));
  const OpenedDataset two = *OpenDataset(Spec("7,1,8,9\n", "header: false"), &two_targets);
  EXPECT_THAT(Samples<float>(*two.train), ElementsAre(7, 0, 1));
  EXPECT_THAT(Targets<float>(*two.train), ElementsAre(8, 9));
  const v1::DatasetSpec turned = Spec("7,8,9\n", "header: false feature_columns: '1' feature_columns: '0'");
  const DataNames named = model_of("a", "b", {"a", "b"});
  EXPECT_THAT(Samples<float>(*OpenDataset(turned, &named)->train), ElementsAre(8, 0, 7));
  EXPECT_THAT(fault("7,8,9\n", model_of("0", "2", {})),
              HasSubstr("has 3 columns, but the model needs 3 before the target"));
}

TEST_F(PreparedTest, AModelWithoutNamesFitsItsOwnTable) {
  const v1::DatasetSpec spec = Spec("1,2,\n4,,6\n", "header: false target_columns: '0'");
  const OpenedDataset trained = Open(spec);
  const DataNames model{.preparation = trained.info.preparation};
  const auto again = OpenDataset(spec, &model);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Samples<float>(*again->train), Samples<float>(*trained.train));
}

TEST_F(PreparedTest, AModelPreparesEachOfItsFeatures) {
  const OpenedDataset trained = Open(Spec("a,y\n1,0\n,1\n"));
  const DataNames model{.features = {"a", "b"}, .preparation = trained.info.preparation};
  EXPECT_THAT(std::string(OpenDataset(Spec("a,b,y\n1,2,3\n"), &model).status().message()),
              HasSubstr("its file names 2 features, but prepares 1;"));
}

TEST_F(PreparedTest, ColumnsAndMissingCellsAreChosen) {
  const std::string table = "a,b,y\n1,2,0\n,5,1\n3,2,2\n";
  OpenedDataset opened = Open(
      Spec(table,
           "scaling: NUMBER_SCALING_NONE target_scaling: NUMBER_SCALING_NONE missing: MISSING_VALUES_MEAN "
           "columns { name: 'a' missing: MISSING_VALUES_CONSTANT constant: '7' missing_indicator: false } "
           "columns { name: 'b' kind: COLUMN_KIND_CATEGORY }"));
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 1, 0, 0, 7, 0, 1, 0, 3, 1, 0, 0));
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(0, 1, 2));
  opened = Open(Spec(table, "columns { name: 'a' kind: COLUMN_KIND_IGNORED } scaling: NUMBER_SCALING_NONE"));
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(2, 5, 2));
  ExpectViolation(Spec(table, "missing: MISSING_VALUES_REFUSE"), "csv.train",
                  "row 3, column 'a' is missing, as 1 of 3 cells of this column are");
  ExpectViolation(Spec(table, "columns { name: 'z' }"), "csv.columns[0].name",
                  "is 'z', which is no feature of the table; its features are 'a', 'b'");
  ExpectViolation(Spec(table, "columns { name: 'a' missing: MISSING_VALUES_CONSTANT }"),
                  "csv.columns[0].constant", "is required");
  ExpectViolation(Spec(table, "missing: MISSING_VALUES_CONSTANT"), "csv.missing", "needs a value for each");
  opened = Open(Spec("a,y\n1,0\n-,1\n3,2\n", "missing_texts: '-' scaling: NUMBER_SCALING_NONE"));
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 0, 2, 1, 3, 0));
}

TEST_F(PreparedTest, MissingTextsOfLaterTablesAreMissing) {
  const OpenedDataset trained = Open(Spec("a,y\n1,0\n5,1\n2,2\n", "missing_texts: '-'"));
  EXPECT_THAT(Samples<float>(*trained.train), ElementsAre(1, 5, 2)) << "not scaled";
  EXPECT_THAT(Targets<float>(*trained.train), ElementsAre(0, 1, 2));
  const DataNames model{.features = trained.info.feature_names,
                        .targets = trained.info.target_names,
                        .preparation = trained.info.preparation};
  EXPECT_THAT(Samples<float>(*Open(Spec("a,y\n-,0\n7,1\n"), &model).train), ElementsAre(2, 7));
}

// 1.234 in a table with decimal commas is likely 1234.
TEST_F(PreparedTest, PointsBetweenThousandsAreRefused) {
  const std::string mend = "remove points between thousands, and write a comma for a decimal point";
  ExpectViolation(Spec("a;b;y\n1,5;999;0\n2,5;1.234;1\n"), "csv.train", "row 3, column 'b' is '1.234'");
  ExpectViolation(Spec("a;b;y\n1,5;999;0\n2,5;1.234;1\n"), "csv.train", mend);
  // A column of such cells alone is no text.
  ExpectViolation(Spec("a;b;y\n1,5;1.234.567,5;0\n2,5;1.234;1\n"), "csv.train", mend);
  // Neither are targets names of classes.
  ExpectViolation(Spec("a;y\n1,5;1.234\n2,5;2.345\n"), "csv.train", "row 2, column 'y' is '1.234'");
  ExpectViolation(Spec("a;y\n1,5;1.234\n2,5;2.345\n"), "csv.train", mend);
  ExpectViolation(Spec("a;y\n1,5;1.234\n2,5;2.345\n", "targets: TARGET_KIND_VALUES"), "csv.train", mend);
  EXPECT_THAT(Open(Spec("a;y\n1,5;1.234\n2,5;2.345\n", "targets: TARGET_KIND_CLASS")).info.class_names,
              ElementsAre("1.234", "2.345"));
  v1::DatasetSpec validated = Spec("a;b;y\n1,5;999;0\n2,5;1;1\n");
  validated.mutable_csv()->set_validation(WriteFile(folder_ + "/v.csv", "a;b;y\n1,5;1.234;0\n"));
  ExpectViolation(validated, "csv.validation", mend);
  EXPECT_THAT(Samples<float>(*Open(Spec("a;b;y\n1,5;0.125;0\n2,5;1.5;1\n")).train),
              ElementsAre(1.5, 0.125, 2.5, 1.5));
}

// 1,001 beside 2.51 is 1001.
TEST_F(PreparedTest, CommasBetweenThousandsAreRefused) {
  const std::string mend = "remove commas between thousands, and write a point for a decimal comma";
  for (const std::string delimiter : {"\t", ";", ","}) {
    SCOPED_TRACE(delimiter);
    const auto table = [&](std::vector<std::string> rows) {
      for (std::string& row : rows) row = absl::StrReplaceAll(row, {{"|", delimiter}});
      return absl::StrJoin(rows, "\n");
    };
    const std::string income = table({"income|ratio", "951|2.51", "\"1,001\"|3.25", ""});
    ExpectViolation(Spec(income), "csv.train", "row 3, column 'income' is '1,001'");
    ExpectViolation(Spec(income), "csv.train", mend);
    ExpectViolation(Spec(income), "csv.train", "or give csv.decimal_comma: true");
    // A column of such cells alone is no text.
    ExpectViolation(Spec(table({"a|b|y", "2|\"-1,234,567.5\"|0", "3|\"1,234\"|1", ""})), "csv.train", mend);
    // Neither are targets names of classes.
    const std::string target = table({"a|y", "2|\"1,234\"", "3|\"2,345\"", ""});
    for (const char* targets : {"", "targets: TARGET_KIND_VALUES"}) {
      ExpectViolation(Spec(target, targets), "csv.train", "row 2, column 'y' is '1,234'");
      ExpectViolation(Spec(target, targets), "csv.train", mend);
      ExpectViolation(Spec(target, targets), "csv.train", "or give csv.decimal_comma: true");
    }
    EXPECT_THAT(Open(Spec(target, "targets: TARGET_KIND_CLASS")).info.class_names,
                ElementsAre("1,234", "2,345"));
    EXPECT_THAT(Targets<float>(*Open(Spec(target, "decimal_comma: true")).train),
                ElementsAre(1.234F, 2.345F));
  }
  // Another cell proves the decimal comma.
  EXPECT_THAT(Samples<float>(*Open(Spec("a;b;y\n1,5;1,001;0\n2,5;951;1\n")).train),
              ElementsAre(1.5, 1.001F, 2.5, 951));
  EXPECT_THAT(Samples<float>(*Open(Spec("a;y\n0,125;0\n1,125;1\n")).train), ElementsAre(0.125, 1.125));
}

TEST_F(PreparedTest, ATableForAModelMayRepeatTheModelsChoices) {
  const std::string table = "a,b,c,y\n1,2,u,0\n,5,v,1\n3,2,u,2\n4,3,v,1\n";
  for (const std::string csv : {
           "",
           "missing: MISSING_VALUES_MEAN",
           "missing: MISSING_VALUES_MEDIAN",
           "missing: MISSING_VALUES_MOST_FREQUENT scaling: NUMBER_SCALING_QUANTILES",
           "missing_texts: '-'",
           "scaling: NUMBER_SCALING_NONE target_scaling: NUMBER_SCALING_NONE",
           "columns { name: 'a' missing: MISSING_VALUES_CONSTANT constant: '7' missing_indicator: false }",
           "columns { name: 'b' kind: COLUMN_KIND_CATEGORY missing: MISSING_VALUES_REFUSE "
           "          missing_indicator: true }",
           "columns { name: 'c' missing: MISSING_VALUES_MOST_FREQUENT max_categories: 1 }",
           "columns { name: 'a' kind: COLUMN_KIND_IGNORED } missing: MISSING_VALUES_REFUSE",
       }) {
    SCOPED_TRACE(csv);
    const OpenedDataset trained = Open(Spec(table, csv));
    const DataNames model{.features = trained.info.feature_names,
                          .targets = trained.info.target_names,
                          .preparation = trained.info.preparation};
    const OpenedDataset again = Open(Spec(table, csv), &model);
    EXPECT_EQ(Samples<float>(*again.train), Samples<float>(*trained.train));
    // Nothing was chosen.
    EXPECT_EQ(Samples<float>(*Open(Spec(table), &model).train), Samples<float>(*trained.train));
  }
}

TEST_F(PreparedTest, ATableForAModelMayNotContradictTheModel) {
  const std::string table = "a,b,c,y\n1,2,u,0\n,5,v,1\n3,2,u,2\n4,3,v,1\n";
  const OpenedDataset trained = Open(Spec(table));
  const DataNames model{.features = trained.info.feature_names,
                        .targets = trained.info.target_names,
                        .preparation = trained.info.preparation};
  const auto expect_fault = [&](const std::string& csv, const DataNames& model, const std::string& field,
                                const std::string& part) {
    SCOPED_TRACE(csv);
    ExpectOneViolation(OpenDataset(Spec(table, csv), &model).status(), field, part);
    ExpectOneViolation(DescribeDataset(Spec(table, csv), &model).status(), field, part);
  };
  expect_fault("missing: MISSING_VALUES_MEAN", model, "csv.missing",
               "is mean, but the loaded model's preparation of the column 'a' has median; leave it out: the "
               "model's preparation is used");
  expect_fault("scaling: NUMBER_SCALING_QUANTILES", model, "csv.scaling", "is quantiles, but");
  expect_fault("missing_texts: '-'", model, "csv.missing_texts", "are '-', but the loaded model's");
  const auto column = [](const std::string& choice) { return "columns { " + choice + " }"; };
  expect_fault(column("name: 'a' missing: MISSING_VALUES_MEAN"), model, "csv.columns[0].missing", "is mean");
  expect_fault(column("name: 'c' missing: MISSING_VALUES_MOST_FREQUENT"), model, "csv.columns[0].missing",
               "is most_frequent, but the loaded model's preparation of the column 'c' has no replacement");
  expect_fault(column("name: 'a' missing_indicator: false"), model, "csv.columns[0].missing_indicator",
               "is false");
  expect_fault(column("name: 'a' scaling: NUMBER_SCALING_NONE"), model, "csv.columns[0].scaling",
               "is none, but the loaded model's preparation of the column 'a' has standard");
  expect_fault(column("name: 'c' max_categories: 7"), model, "csv.columns[0].max_categories", "is 7");
  expect_fault(column("name: 'b' kind: COLUMN_KIND_CATEGORY"), model, "csv.columns[0].kind", "is category");
  expect_fault(column("name: 'b' kind: COLUMN_KIND_IGNORED"), model, "csv.columns[0].kind", "is ignored");
  expect_fault(column("name: 'z'"), model, "csv.columns[0].name", "is 'z', which is no column of the table");
  const OpenedDataset constant =
      Open(Spec(table, column("name: 'a' missing: MISSING_VALUES_CONSTANT constant: '7'")));
  const DataNames with_constant{.features = constant.info.feature_names,
                                .targets = constant.info.target_names,
                                .preparation = constant.info.preparation};
  expect_fault(column("name: 'a' missing: MISSING_VALUES_CONSTANT constant: '8'"), with_constant,
               "csv.columns[0].constant",
               "is '8', but the loaded model's preparation of the column 'a' has '7'");
  const OpenedDataset without_b = Open(Spec(table, column("name: 'b' kind: COLUMN_KIND_IGNORED")));
  const DataNames of_two{.features = without_b.info.feature_names,
                         .targets = without_b.info.target_names,
                         .preparation = without_b.info.preparation};
  expect_fault(column("name: 'b' kind: COLUMN_KIND_NUMBER"), of_two, "csv.columns[0].kind",
               "is number, but the loaded model does not take the column 'b'");
  // A model of plain numbers has no preparation.
  const DataNames plain{.features = {"b"}, .targets = {"y"}};
  expect_fault("scaling: NUMBER_SCALING_STANDARD target_scaling: NUMBER_SCALING_NONE", plain, "csv.scaling",
               "is standard, but the loaded model's preparation of the column 'b' has none");
  Open(Spec(table, "missing: MISSING_VALUES_MEAN scaling: NUMBER_SCALING_NONE"), &plain);
}

TEST_F(PreparedTest, MissingCellsAreRefusedWhateverTheModelDoes) {
  const OpenedDataset trained = Open(Spec("a,b,y\n1,2,0\n,,1\n3,2,2\n"));
  const DataNames model{.features = trained.info.feature_names,
                        .targets = trained.info.target_names,
                        .preparation = trained.info.preparation};
  const std::string gaps = "a,b,y\n1,2,0\n4,,1\n", whole = "a,b,y\n1,2,0\n4,6,1\n";
  const std::string all = "missing: MISSING_VALUES_REFUSE";
  const std::string only_b = "columns { name: 'b' missing: MISSING_VALUES_REFUSE }";
  const std::string only_a = "columns { name: 'a' missing: MISSING_VALUES_REFUSE }";
  for (const std::string& csv : {all, only_b}) {
    for (const absl::Status& status :
         {OpenDataset(Spec(gaps, csv), &model).status(), DescribeDataset(Spec(gaps, csv), &model).status()}) {
      ExpectOneViolation(status, "csv.train", "row 3, column 'b' is empty, but missing cells are refused");
    }
  }
  v1::DatasetSpec validated = Spec(whole, all);
  validated.mutable_csv()->set_validation(WriteFile(folder_ + "/other.csv", gaps));
  ExpectOneViolation(OpenDataset(validated, &model).status(), "csv.validation", "column 'b' is empty");
  EXPECT_EQ(Samples<float>(*Open(Spec(gaps, only_a), &model).train),
            Samples<float>(*Open(Spec(gaps), &model).train));
  EXPECT_EQ(Samples<float>(*Open(Spec(whole, all), &model).train),
            Samples<float>(*Open(Spec(whole), &model).train));
}

TEST_F(PreparedTest, NumbersWithoutGapsStayAsTheyAre) {
  const OpenedDataset opened = Open(Spec("a,y\n1.5,100\n2.5,300\n"));
  EXPECT_FALSE(opened.info.preparation.has_value());
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1.5, 2.5));
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(100, 300));
}

TEST_F(PreparedTest, TargetsAreScaledWithMixedFeatures) {
  const OpenedDataset opened = Open(Spec("a,y\n1,100\n,300\n"));
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(-1, 1));
  EXPECT_EQ(opened.info.preparation->target_mean(), 200);
  EXPECT_EQ(opened.info.preparation->target_deviation(), 100);
  ExpectViolation(Spec(people_, "target_scaling: NUMBER_SCALING_STANDARD"), "csv.target_scaling",
                  "the target is a class");
  ExpectViolation(Spec("a,y\n1,2\n", "target_scaling: NUMBER_SCALING_QUANTILES"), "csv.target_scaling",
                  "must be none or standard");
}

TEST_F(PreparedTest, AModelsTargetsKeepTheirScale) {
  const auto fault = [&](const std::string& scaling, const DataNames& model) {
    const std::string csv = scaling.empty() ? "" : "target_scaling: NUMBER_SCALING_" + scaling;
    const absl::Status status = OpenDataset(Spec("a,y\n1,100\n3,300\n", csv), &model).status();
    if (status.ok()) return std::string();
    const std::vector<FieldViolation> found = GetFieldViolations(status);
    EXPECT_EQ(found.size(), 1u) << status;
    EXPECT_EQ(found[0].field, "csv.target_scaling");
    return found[0].description;
  };
  // Numbers as they are.
  DataNames model{.features = {"a"}, .targets = {"y"}};
  EXPECT_EQ(fault("", model), "");
  EXPECT_EQ(fault("NONE", model), "");
  EXPECT_THAT(fault("STANDARD", model), HasSubstr("train without initial_weights"));
  model.matches_outputs = false;
  EXPECT_THAT(fault("STANDARD", model), HasSubstr("cannot keep a scale"));
  // Prepared features.
  const OpenedDataset opened = Open(Spec("a,y\n1,100\n,300\n"));
  model = {.features = {"a"}, .targets = {"y"}, .preparation = opened.info.preparation};
  EXPECT_EQ(fault("", model), "");
  EXPECT_EQ(fault("STANDARD", model), "");
  EXPECT_THAT(fault("NONE", model), HasSubstr("must not be none"));
  model.preparation->clear_target_mean();
  model.preparation->clear_target_deviation();
  EXPECT_EQ(fault("NONE", model), "");
  EXPECT_THAT(fault("STANDARD", model), HasSubstr("train the last layer anew"));
  model.matches_outputs = false;
  EXPECT_EQ(fault("STANDARD", model), "");
}

TEST_F(PreparedTest, ANewLastLayerScalesItsTargetsAnew) {
  const OpenedDataset scaled = Open(Spec("a,y\n1,100\n,300\n"));
  // A model of classes has no scale.
  const OpenedDataset classes = Open(Spec("a,y\n1,no\n,yes\n"));
  ASSERT_EQ(classes.info.preparation->target_deviation(), 0);
  // The model's table left a text out, or has a gap without an indicator.
  const OpenedDataset text = Open(Spec("a,t,y\n1,Ann B.,no\n5,Bob C.,yes\n"));
  const OpenedDataset gap =
      Open(Spec("a,y\n1,no\n5,yes\n,no\n", "columns { name: 'a' missing_indicator: false }"));
  for (const OpenedDataset* trained : {&scaled, &classes, &text, &gap}) {
    ASSERT_TRUE(trained->info.preparation.has_value());
    ASSERT_THAT(trained->info.feature_names, ElementsAre("a"));
    DataNames model{.features = {"a"}, .targets = {"y"}, .preparation = trained->info.preparation};
    model.matches_outputs = false;
    const OpenedDataset tuned = Open(Spec("a,y\n1,10\n3,50\n"), &model);
    EXPECT_THAT(Targets<float>(*tuned.train), ElementsAre(-1, 1));
    EXPECT_EQ(tuned.info.preparation->target_mean(), 30);
    EXPECT_EQ(tuned.info.preparation->target_deviation(), 20);
    const OpenedDataset plain =
        Open(Spec("a,y\n1,10\n3,50\n", "target_scaling: NUMBER_SCALING_NONE"), &model);
    EXPECT_THAT(Targets<float>(*plain.train), ElementsAre(10, 50));
  }
  // Numbers that the job itself scales leave the target as it is, with a model and without.
  const std::string standard = "scaling: NUMBER_SCALING_STANDARD";
  DataNames model{.features = {"a"}, .targets = {"y"}};
  model.preparation = Open(Spec("a,y\n1,no\n5,yes\n", standard)).info.preparation;
  ASSERT_TRUE(model.preparation.has_value());
  model.matches_outputs = false;
  for (const DataNames* names : {static_cast<const DataNames*>(nullptr), &std::as_const(model)}) {
    const OpenedDataset opened = Open(Spec("a,y\n1,10\n3,50\n", standard), names);
    EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(10, 50));
  }
}

TEST_F(PreparedTest, OnlyTrainingRowsAreFitted) {
  const std::string table = "t,c,y\n1,a,0\n2,a,1\n3,,2\n9,b,3\n100,b,4\n";
  const OpenedDataset opened = Open(Spec(table, "", "validation_split { fraction: 0.4 time_column: 't' }"));
  ASSERT_EQ(opened.info.train_samples, 3);
  EXPECT_EQ(opened.info.preparation->columns(0).numbers(0).mean(), 2);
  EXPECT_THAT(opened.info.preparation->columns(1).categories(), ElementsAre("a"));
  EXPECT_EQ(opened.info.preparation->target_mean(), 1);
  // 'b' is another value, because no training row has it.
  const std::vector<float> validation = Samples<float>(*opened.validation);
  EXPECT_THAT(std::vector<float>(validation.begin() + 1, validation.begin() + 5), ElementsAre(0, 0, 1, 0));
  // train_limit counts too. The shape does not depend on it.
  const OpenedDataset limited = Open(Spec(table, "", "train_limit: 2"));
  EXPECT_EQ(limited.info.preparation->columns(0).numbers(0).mean(), 1.5);
  EXPECT_EQ(limited.info.shape, opened.info.shape);
  EXPECT_EQ(DescribeDataset(Spec(table))->shape, opened.info.shape);
}

TEST_F(PreparedTest, FormsOfFilesAreFound) {
  const auto samples = [this](const std::string& table, const std::string& csv = "") {
    return Samples<float>(*Open(Spec(table, csv)).train);
  };
  EXPECT_THAT(samples("a;b;y\n1;2;3\n4;5;6\n"), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(samples("a\tb\ty\n1\t2\t3\n"), ElementsAre(1, 2));
  EXPECT_THAT(samples("sep=;\na;b;y\n1;2;3\n"), ElementsAre(1, 2));
  EXPECT_THAT(samples("sep=\t\r\na\tb\ty\r\n1\t2\t3\r\n"), ElementsAre(1, 2));
  EXPECT_THAT(samples("a;b;y\n1,5;2;3\n2;3;4,5\n"), ElementsAre(1.5, 2, 2, 3));
  EXPECT_THAT(samples("1,5;2;3\n2;3;4,5\n", "header: false"), ElementsAre(1.5, 2, 2, 3));
  // A comma splits these rows into three cells each.
  EXPECT_THAT(samples("1,5\t2,5\n3,5\t4,5\n", "header: false"), ElementsAre(1.5, 3.5));
  EXPECT_THAT(samples("1,5|2,5\n3,5|4,5\n", "header: false"), ElementsAre(1.5, 3.5));
  EXPECT_THAT(samples("# made by hand\n# on a day\na,b,y\n1,2,3\n# middle\n4,5,6\n"),
              ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(samples("a,b,y\n1,2,3\n% no row\n", "comment: '%'"), ElementsAre(1, 2));
  EXPECT_THAT(samples("'a, b','y'\n1,3\n2,4\n"), ElementsAre(1, 2));
  // Without quotes, these rows have as many cells.
  EXPECT_THAT(samples("'a','b','y'\n'1','2','3'\n'4','','6'\n'7','5','8'\n", "scaling: NUMBER_SCALING_NONE"),
              ElementsAre(1, 2, 0, 4, 3.5, 1, 7, 5, 0));
  EXPECT_THAT(samples("a,name,y\n1,'x',3\n2,'',4\n3,'z, w',4\n4,'x',3\n5,'z, w',3\n",
                      "scaling: NUMBER_SCALING_NONE columns { name: 'name' kind: COLUMN_KIND_IGNORED }"),
              ElementsAre(1, 2, 3, 4, 5));
  // A cell without quotes shows that they are parts of the cells.
  EXPECT_THAT(Open(Spec("a,kind\n1,'x'\n2,y\n")).info.class_names, ElementsAre("'x'", "y"));
  // UTF-16 with a byte order mark, in both byte orders.
  const std::string plain = "a,y\n1,2\n";
  std::string little = "\xFF\xFE", big = "\xFE\xFF";
  for (const char c : plain) {
    little += std::string{c, '\0'};
    big += std::string{'\0', c};
  }
  EXPECT_THAT(samples(little), ElementsAre(1));
  EXPECT_THAT(samples(big), ElementsAre(1));
  ExpectViolation(Spec(little + "x"), "csv.train", "ends within a character of UTF-16");
  // Latin-1, found by the cells, or given.
  const std::string latin = "a,kind\n1,caf\xE9\n2,the\n";
  EXPECT_THAT(Open(Spec(latin)).info.class_names, ElementsAre("caf\xC3\xA9", "the"));
  EXPECT_THAT(Open(Spec(latin, "encoding: TEXT_ENCODING_LATIN1")).info.class_names,
              ElementsAre("caf\xC3\xA9", "the"));
  ExpectViolation(Spec("a,y\n1,2\n", "quote: '`'"), "csv.quote", "it must be");
  for (const char* returns : {"a,y\r1,2\r3,4\r", "\"a\",\"y\"\r\"1\",\"2\"\r"}) {
    ExpectViolation(Spec(returns), "csv.train", "ends its lines by carriage returns alone");
  }
}

TEST_F(PreparedTest, AFirstRowThatIsASampleIsFound) {
  const std::string adult =
      "39,State,77,Male,low\n50,Self,83,Male,low\n38,State,21,Female,high\n40,Self,5,Male,low\n";
  const OpenedDataset opened = Open(Spec(adult));
  EXPECT_EQ(opened.info.train_samples, 4);
  EXPECT_FALSE(opened.info.table_format->header());
  // Years are names here: "country" is no value of the column.
  const OpenedDataset years = Open(Spec("country,2019,2020\nfr,1,2\nde,3,4\nfr,5,6\nde,7,8\n"));
  EXPECT_EQ(years.info.train_samples, 4);
  EXPECT_TRUE(years.info.table_format->header());
}

TEST_F(PreparedTest, ColumnsAreReported) {
  const v1::DatasetSpec spec = Spec(people_);
  const CsvReport report = *ReportCsv(spec, *DescribeDataset(spec));
  ASSERT_THAT(report.columns, SizeIs(5));
  EXPECT_TRUE(report.is_utf8);
  EXPECT_FALSE(report.has_quotes);
  const v1::TableColumn& age = report.columns[0];
  EXPECT_EQ(age.kind(), v1::COLUMN_KIND_NUMBER);
  EXPECT_EQ(age.missing(), 1);
  EXPECT_EQ(age.distinct(), 3);
  EXPECT_EQ(age.least(), "10");
  EXPECT_EQ(age.largest(), "30");
  EXPECT_THAT(age.examples(), ElementsAre("10", "30", "20"));
  EXPECT_EQ(age.inputs(), 2);
  EXPECT_EQ(report.columns[2].kind(), v1::COLUMN_KIND_CATEGORY);
  EXPECT_EQ(report.columns[2].inputs(), 3);
  EXPECT_EQ(report.columns[3].kind(), v1::COLUMN_KIND_TEXT);
  EXPECT_EQ(report.columns[3].inputs(), 0);
  EXPECT_TRUE(report.columns[4].target());
}

TEST_F(PreparedTest, DatesAreReportedInTheOrderOfAllCells) {
  const auto expect = [&](const std::string& table, const std::string& least, const std::string& largest) {
    const v1::DatasetSpec spec = Spec(table);
    const CsvReport report = *ReportCsv(spec, *DescribeDataset(spec));
    EXPECT_EQ(report.columns[0].kind(), v1::COLUMN_KIND_DATE);
    EXPECT_EQ(report.columns[0].least(), least);
    EXPECT_EQ(report.columns[0].largest(), largest);
  };
  // Only the last row shows that the day is first.
  expect("day,y\n01/12/2023,1\n05/04/2024,2\n31/01/2024,3\n", "2023-12-01", "2024-04-05");
  expect("day,y\n01/12/2023,1\n05/04/2024,2\n01/31/2024,3\n", "2023-01-12", "2024-05-04");
}

TEST_F(PreparedTest, LongCellsAreCounted) {
  constexpr int kCells = 33;
  std::string table = "age,essay,y\n";
  for (int i = 0; i < kCells; ++i) {
    absl::StrAppend(&table, i, ",", std::string(1 << 20, static_cast<char>('A' + i)), ",", i % 2, "\n");
  }
  const v1::DatasetSpec spec = Spec(table);
  const CsvReport report = *ReportCsv(spec, *DescribeDataset(spec));
  EXPECT_EQ(report.columns[1].distinct(), kCells);
  EXPECT_EQ(report.columns[1].examples(1), std::string(40, 'B'));
}

TEST_F(PreparedTest, ATableOfTextAloneIsRefused) {
  ExpectViolation(Spec("a,y\nx,1\ny,2\nz,3\n"), "csv.feature_columns",
                  "leave nothing: no column has numbers, categories or dates; give the kind of 'a'");
}

}  // namespace
}  // namespace tandem
