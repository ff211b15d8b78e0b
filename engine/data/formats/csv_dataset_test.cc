#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/csv_fixture.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using CsvTest = CsvFixture;

TEST_F(CsvTest, TheLastColumnIsTheTarget) {
  const OpenedDataset opened =
      Open(Spec("\xEF\xBB\xBFsize, rooms,price\r\n1,2,3\r\n\r\n-4.5,+5e1,\"6\"\n7,8,.5"));
  EXPECT_EQ(opened.info.shape, Shape({2}));
  EXPECT_EQ(opened.info.sample_type, SampleType::kFloats);
  EXPECT_EQ(opened.info.target_type, TargetKind::kValues);
  EXPECT_EQ(opened.info.target_shape, Shape({1}));
  EXPECT_EQ(opened.info.train_samples, 3);
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 2, -4.5, 50, 7, 8));
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(3, 6, 0.5));
}

TEST_F(CsvTest, ColumnsAreChosenByNameOrPosition) {
  const std::string table = "a,b,c,d\n1,2,x,4\n5,6,y,8\n";
  OpenedDataset opened = Open(Spec(table, "target_columns: ['d', 'a'] feature_columns: 'b'"));
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(2, 6));
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(4, 1, 8, 5));
  opened = Open(Spec("1;2;3\n4;5;6\n", "header: false delimiter: ';' target_columns: '0'"));
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(1, 4));
}

TEST_F(CsvTest, FeaturesHaveNames) {
  const auto names = [this](const std::string& table, const std::string& more = "") {
    return DescribeDataset(Spec(table, more))->feature_names;
  };
  EXPECT_THAT(names("size, rooms ,price\n1,2,3\n"), ElementsAre("size", "rooms"));
  EXPECT_THAT(names("a,\"b\n2\",c\n1,2,3\n", "target_columns: 'a' feature_columns: ['c', 'b\\n2']"),
              ElementsAre("c", "b\n2"));
  EXPECT_THAT(names("1,2,3\n", "header: false"), IsEmpty());
  // Equal names do not identify columns.
  EXPECT_THAT(names("x,x,y\n1,2,3\n"), IsEmpty());
  // A row longer than a piece.
  const std::string longest(3 << 20, 'n');
  EXPECT_THAT(names(longest + ",m,y\n1,2,3\n"), ElementsAre(longest, "m"));
}

TEST_F(CsvTest, ClassesAreTextOrNumbers) {
  OpenedDataset opened = Open(Spec("x,kind\n1,\"sea, lion\"\n2,cat\n3,\"sea, lion\"\n4,\"a \"\"dog\"\"\"\n"));
  EXPECT_EQ(opened.info.target_type, TargetKind::kClass);
  EXPECT_EQ(opened.info.classes, 3);
  EXPECT_THAT(opened.info.class_names, ElementsAre("a \"dog\"", "cat", "sea, lion"));
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(2, 1, 2, 0));

  opened = Open(Spec("x,kind\n1,4\n2,0\n", "targets: TARGET_KIND_CLASS"));
  EXPECT_EQ(opened.info.classes, 5);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(4, 0));
  ExpectViolation(Spec("x,kind\n1,4\n2,0\n", "targets: TARGET_KIND_CLASS classes: 3"), "csv.train",
                  "row 2, column 'kind' is class 4, outside the 3 classes (0 to 2)");
  ExpectViolation(Spec("x,kind\n1,4\n2,0.5\n", "targets: TARGET_KIND_CLASS"), "csv.train",
                  "row 3, column 'kind' is '0.5'; classes must be integers");
  ExpectViolation(Spec("x,kind\n1,a\n2,b\n", "classes: 3"), "csv.classes",
                  "but the training table has 2 classes");
}

TEST_F(CsvTest, ValidationHasTheSameColumnsAndClasses) {
  v1::DatasetSpec spec = Spec("x,kind\n1,cat\n2,dog\n");
  spec.mutable_csv()->set_validation(WriteFile(folder_ + "/other.csv.gz", Gzipped("x,kind\n3,dog\n")));
  const OpenedDataset opened = Open(spec);
  EXPECT_THAT(Samples<float>(*opened.validation), ElementsAre(3));
  EXPECT_THAT(Targets<int32_t>(*opened.validation), ElementsAre(1));
  WriteFile(folder_ + "/other.csv.gz", "x,kind\n3,dog\n3,fox\n");
  ExpectViolation(spec, "csv.validation",
                  "row 3, column 'kind' is 'fox', a class that the training table does not have");
  WriteFile(folder_ + "/other.csv.gz", "kind,y\ndog,3\n");
  ExpectViolation(spec, "csv.validation", "it has no columns 'x' in place of 1; its columns are 'kind', 'y'");
}

TEST_F(CsvTest, NamesTheRowAndTheColumnAtFault) {
  ExpectViolation(Spec("a,b,c\n1,2,3\n4,5\n"), "csv.train",
                  "row 3 has 2 fields, but the table has 3 columns; column 'c' is the first that is missing");
  ExpectViolation(Spec("a,b,c\n1,2,3\n4,5,6,7\n"), "csv.train",
                  "row 3 has 4 fields, but the table has 3 columns");
  ExpectViolation(Spec("a,b,c\n1,two,3\n", "columns { name: 'b' kind: COLUMN_KIND_NUMBER }"), "csv.train",
                  "row 2, column 'b' is 'two'; it must be a finite number");
  ExpectViolation(Spec("a,b,c\n1,,3\n4,5,6\n", "missing: MISSING_VALUES_REFUSE"), "csv.train",
                  "row 2, column 'b' is missing");
  ExpectViolation(Spec("a,b,c\n1,nan,3\n4,5,6\n", "missing: MISSING_VALUES_REFUSE"), "csv.train",
                  "row 2, column 'b' is missing");
  // Finite as a double, infinite as a float.
  ExpectViolation(Spec("a,b,c\n1,1e39,3\n"), "csv.train", "row 2, column 'b' is '1e39'");
  ExpectViolation(Spec("a,b\n1,3\n2,-1e300\n", "targets: TARGET_KIND_VALUES"), "csv.train",
                  "row 3, column 'b' is '-1e300'");
  ExpectViolation(Spec("a,b\xFF,c\n1,\xC3,3\n", "columns { name: 'b\xC3\xBF' kind: COLUMN_KIND_NUMBER }"),
                  "csv.train", "row 2, column 'b\xC3\xBF' is '\\xc3'");
  ExpectViolation(Spec("a,b\n1,3\n2,x\n", "targets: TARGET_KIND_VALUES"), "csv.train",
                  "row 3, column 'b' is 'x'; it must be a finite number");
  ExpectViolation(Spec("a,b\n1,\"3\n2,4\n"), "csv.train",
                  "row 2: field 2 begins with a quote that is not closed");
  ExpectViolation(Spec("a,b\n1,\"3\"4\n"), "csv.train", "row 2: field 2 goes on after its closing quote");
}

TEST_F(CsvTest, NamesTheFieldsAtFault) {
  ExpectViolation(Spec(""), "csv.train", "has no rows");
  ExpectViolation(Spec("a,b\n"), "csv.train", "has no rows but the one that names its columns");
  ExpectViolation(Spec("a,b\n1,2\n", "target_columns: 'z'"), "csv.target_columns[0]",
                  "is 'z', and the table has no such column; it has a, b");
  ExpectViolation(Spec("a,b\n1,2\n", "feature_columns: 'b'"), "csv.feature_columns[0]", "which is a target");
  ExpectViolation(Spec("a,a,b\n1,2,3\n", "feature_columns: 'a'"), "csv.feature_columns[0]",
                  "the table has several columns of this name");
  ExpectViolation(Spec("a,b,c\n1,2,3\n", "feature_columns: ['a', 'a']"), "csv.feature_columns[1]", "again");
  ExpectViolation(Spec("x,kind\n1,a\n2," + std::string(2000, 'b') + "\n"), "class_names", "of 2000 bytes");
  ExpectViolation(Spec("a\n1\n"), "csv.feature_columns", "leave nothing");
  ExpectViolation(Spec("a,b\n1,2\n", "delimiter: '::'"), "csv.delimiter", "it must be one character");
  ExpectViolation(Spec("a,b\n1,2\n", "targets: TARGET_KIND_TOKENS"), "csv.targets", "is tokens");
  ExpectViolation(Spec("a,b\n1,2\n", "classes: 4"), "csv.classes", "the targets are values");
}

TEST_F(CsvTest, AnEmptyTargetIsRefused) {
  // The trailing delimiter adds an empty last column.
  ExpectViolation(Spec("a,b,y,\n1,2,3,\n4,5,6,\n"), "csv.train",
                  "row 2, column '' is empty, but it is a target; the first row ends with a delimiter");
  for (const char* more : {"", "targets: TARGET_KIND_CLASS", "targets: TARGET_KIND_VALUES"}) {
    SCOPED_TRACE(more);
    ExpectViolation(Spec("x,y\n1,2\n2,\n3,4\n", more), "csv.train",
                    "row 3, column 'y' is empty, but it is a target; fill it in, or remove the row");
  }
  ExpectViolation(Spec("x,kind\n1,cat\n2, \n3,dog\n"), "csv.train", "row 3, column 'kind' is empty");
  v1::DatasetSpec spec = Spec("x,kind\n1,cat\n3,dog\n");
  spec.mutable_csv()->set_validation(WriteFile(folder_ + "/other.csv", "x,kind\n3,\n"));
  ExpectViolation(spec, "csv.validation", "row 2, column 'kind' is empty");
}

TEST_F(CsvTest, ClassesThatMeanAMissingCellAreTold) {
  const std::string table = "x,kind\n1,cat\n2,NA\n3,-\n4,cat\n";
  const OpenedDataset opened = Open(Spec(table));
  EXPECT_THAT(opened.info.class_names, ElementsAre("-", "NA", "cat"));
  ASSERT_EQ(opened.info.notices.size(), 1u);
  EXPECT_THAT(opened.info.notices[0], HasSubstr("a missing cell are classes of the target: 'NA'; if such"));
  EXPECT_THAT(Open(Spec(table, "missing_texts: '-'")).info.notices, Contains(HasSubstr(": '-', 'NA'; if")));
  EXPECT_THAT(Open(Spec("x,kind\n1,cat\n2,dog\n")).info.notices, IsEmpty());
}

TEST_F(CsvTest, NumbersBesideTextAreRefused) {
  ExpectViolation(
      Spec("x,y\n1,2\n2,3.5\n3,4o\n4,5\n"), "csv.train",
      "row 4, column 'y' is '4o', which is no number, but the column holds numbers in 3 other rows; "
      "correct it, or give csv.targets: class");
  ExpectViolation(Spec("x,y\n1,2\n2,nan\n"), "csv.train", "row 3, column 'y' is 'nan', which is no number");
  ExpectViolation(
      Spec("x,kind\n1,cat\n2,7\n3,dog\n"), "csv.train",
      "row 3, column 'kind' is '7', which is a number, but the column holds text in 2 other rows");
  // The source may say that they are classes.
  const OpenedDataset opened = Open(Spec("x,kind\n1,cat\n2,7\n3,dog\n", "targets: TARGET_KIND_CLASS"));
  EXPECT_THAT(opened.info.class_names, ElementsAre("7", "cat", "dog"));
  ASSERT_EQ(opened.info.notices.size(), 1u);
  EXPECT_THAT(opened.info.notices[0], HasSubstr("row 3, column 'kind' is '7', which is a number"));
}

TEST_F(CsvTest, AFirstRowOfNumbersIsTold) {
  const auto notices = [this](const std::string& table, const std::string& more = "") {
    return DescribeDataset(Spec(table, more))->notices;
  };
  ASSERT_EQ(notices("1,2,3\n4,5,6\n").size(), 1u);
  EXPECT_THAT(
      notices("1,2,3\n4,5,6\n")[0],
      HasSubstr("'1', '2', '3', is taken for the names of the columns, and names columns by numbers; if it "
                "is a sample, give csv.header: false"));
  EXPECT_THAT(notices("5.1,3.5,setosa\n4.9,3.0,setosa\n6.3,3.3,virginica\n"),
              ElementsAre(HasSubstr("'5.1', '3.5', 'setosa', is taken for the names")));
  EXPECT_THAT(notices("kind,2,3\ncat,5,6\ndog,7,8\n", "target_columns: 'kind'"),
              ElementsAre(HasSubstr("'kind', '2', '3', is taken for the names")));
  // Columns of text and of categories say nothing, because a category may be in one row.
  for (const char* table : {
           "red,3,10\nblue,4,20\nblue,5,30\ngreen,6,40\ngreen,7,55\n",
           "red,3,10\nblue,4,20\ngreen,5,30\ngrey,6,40\n",
           "red,3,no\nblue,4,yes\nblue,5,no\ngreen,6,yes\ngreen,7,no\n",
           "red,,10\nblue,4,20\nblue,5,30\ngreen,6,40\ngreen,7,55\n",
           "red,10\nblue,20\nblue,30\ngreen,40\ngreen,55\n",
       }) {
    EXPECT_THAT(notices(table), Contains(HasSubstr("names columns by numbers; if it is a sample"))) << table;
    EXPECT_THAT(notices(table, "header: true"), Not(Contains(HasSubstr("names columns by numbers"))))
        << table;
  }
  EXPECT_THAT(notices("red,3,1\nblue,4,0\nblue,5,1\ngreen,6,0\ngreen,7,1\n", "targets: TARGET_KIND_CLASS"),
              Contains(HasSubstr("names columns by numbers")));
  // A text above numbers is a name.
  for (const char* table : {
           "colour,3,price\nblue,4,20\nblue,5,30\ngreen,6,40\ngreen,7,55\n",
           "colour,size,10\nblue,4,20\nblue,5,30\ngreen,6,40\ngreen,7,55\n",
           "1,2,y\n3,4,5\n6,7,8\n",
       }) {
    EXPECT_THAT(notices(table), Not(Contains(HasSubstr("names columns by numbers")))) << table;
  }
  EXPECT_THAT(notices("1,2,3\n4,5,6\n", "header: true"), IsEmpty());
  EXPECT_THAT(notices("1,2,3\n4,5,6\n", "header: false"), IsEmpty());
  EXPECT_THAT(notices("a,2,3\n4,5,6\n"), IsEmpty());
  // A column of row numbers, as pandas writes it.
  ASSERT_EQ(notices(",a,y\n0,5,6\n").size(), 1u);
  EXPECT_THAT(notices(",a,y\n0,5,6\n")[0], HasSubstr("Column 1 of "));
  EXPECT_THAT(notices(",a,y\n0,5,6\n", "feature_columns: 'a'"), IsEmpty());
}

TEST_F(CsvTest, LabelsThatLeaveClassesWithoutSamplesAreTold) {
  const auto notices = [this](const std::vector<std::string>& labels, const std::string& more = "") {
    std::string table = "x,y\n";
    for (const std::string& label : labels) absl::StrAppend(&table, "0.5,", label, "\n");
    return DescribeDataset(Spec(table, "targets: TARGET_KIND_CLASS " + more))->notices;
  };
  EXPECT_THAT(
      notices({"10010", "10020", "10010"}),
      ElementsAre("The labels of the column 'y' are whole numbers from 10010 to 10020, so the network has "
                  "10021 classes, and 10019 of them have no sample; number the labels from 0, or write "
                  "them as text."));
  EXPECT_THAT(
      notices({"1", "2", "2.0", "2"}),
      ElementsAre(HasSubstr("from 1 to 2, so the network has 3 classes, and 1 of them has no sample")));
  EXPECT_THAT(notices({"0", "3", "0"}), IsEmpty()) << "half of the classes have samples";
  EXPECT_THAT(notices({"0", "4", "0"}), ElementsAre(HasSubstr("5 classes, and 3 of them have no sample")));
  EXPECT_THAT(notices({"0", "1", "2"}), IsEmpty());
  EXPECT_THAT(notices({"a", "b"}), IsEmpty());
  EXPECT_THAT(notices({"1", "2"}, "classes: 3"), IsEmpty()) << "the number is meant";
  // Values have no labels.
  EXPECT_THAT(DescribeDataset(Spec("x,y\n1,1\n2,4\n"))->notices, IsEmpty());
  // The model's network stays as it is.
  const DataNames model{.features = {"x"}, .targets = {"y"}};
  EXPECT_THAT(DescribeDataset(Spec("x,y\n1,1\n2,2\n", "targets: TARGET_KIND_CLASS"), &model)->notices,
              IsEmpty());
}

TEST_F(CsvTest, ALargeTargetThatIsNotScaledIsTold) {
  const auto notices = [this](const std::string& table, const std::string& more = "",
                              const DataNames* model = nullptr) {
    const absl::StatusOr<DatasetInfo> info = DescribeDataset(Spec(table, more), model);
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? info->notices : std::vector<std::string>();
  };
  const auto told = Contains(HasSubstr("csv.target_scaling: standard"));
  const std::string prices = "rooms,price\n1,100000\n2,300000\n3,400000\n";
  // sqrt((1 + 9 + 16) / 3) = 2.94.
  EXPECT_THAT(
      notices(prices),
      ElementsAre("The target 'price' has values around 300000, and networks reach such values slowly; "
                  "csv.target_scaling: standard scales them while training, and results keep the table's "
                  "scale."));
  EXPECT_THAT(notices("x,y\n1,-101\n2,101\n"), ElementsAre(HasSubstr("values around 100,")));
  EXPECT_THAT(notices("x,y\n1,-100\n2,100\n"), IsEmpty());
  EXPECT_THAT(notices("x,y\n1,2e30\n2,2e30\n"), ElementsAre(HasSubstr("values around 2e+30,")));
  EXPECT_THAT(notices(prices, "scaling: NUMBER_SCALING_STANDARD"), told);
  // The choice is made, or the table scales the target, or nothing can scale it.
  EXPECT_THAT(notices(prices, "target_scaling: NUMBER_SCALING_STANDARD"), IsEmpty());
  EXPECT_THAT(notices(prices, "target_scaling: NUMBER_SCALING_NONE"), IsEmpty());
  EXPECT_THAT(notices("rooms,price\n1,100000\n,300000\n"), Not(told));
  EXPECT_THAT(notices("x,a,b\n1,1000,2000\n2,3000,4000\n", "target_columns: ['a', 'b']"), IsEmpty());
  EXPECT_THAT(notices("x,y\n1,1000\n2,0\n3,2000\n", "targets: TARGET_KIND_CLASS classes: 2001"), IsEmpty());
  const DataNames model{.features = {"rooms"}, .targets = {"price"}};
  EXPECT_THAT(notices(prices, "", &model), IsEmpty());
}

TEST_F(CsvTest, AColumnThatCountsTheRowsIsTold) {
  const auto notices = [this](int64_t first, int64_t step, const std::string& more = "") {
    std::string table = "id,a,y\n";
    for (int64_t i = 0; i < 20; ++i) absl::StrAppend(&table, first + step * i, ",", i * i, ",", i % 3, "\n");
    return DescribeDataset(Spec(table, more))->notices;
  };
  const auto counts = ElementsAre(HasSubstr("The column 'id' counts the rows."));
  EXPECT_THAT(notices(0, 1), counts);
  EXPECT_THAT(notices(1000, 1), counts);
  EXPECT_THAT(notices(0, 2), IsEmpty());
  EXPECT_THAT(notices(0, 1, "columns { name: 'id' kind: COLUMN_KIND_NUMBER }"),
              Not(Contains(HasSubstr("counts the rows"))));
  EXPECT_THAT(notices(0, 1, "feature_columns: 'a'"), IsEmpty());
  EXPECT_THAT(notices(0, 1, "feature_columns: 'id'"), IsEmpty());
}

TEST_F(CsvTest, OneClassHasAMend) {
  const DatasetInfo info = *DescribeDataset(Spec("x,kind\n1,cat\n2,cat\n"));
  EXPECT_EQ(info.classes, 1);
  EXPECT_THAT(info.one_class_mend, HasSubstr("the column 'kind' is alike in all 2 rows"));
  EXPECT_TRUE(info.one_label);
  const DatasetInfo number = *DescribeDataset(Spec("x,kind\n1,3\n2,3.0\n", "targets: TARGET_KIND_CLASS"));
  EXPECT_EQ(number.classes, 4);
  EXPECT_TRUE(number.one_label);
  EXPECT_FALSE(DescribeDataset(Spec("x,kind\n1,3\n2,0\n", "targets: TARGET_KIND_CLASS"))->one_label);
  EXPECT_FALSE(DescribeDataset(Spec("x,y\n1,3\n2,3\n"))->one_label) << "they are values";
}

TEST_F(CsvTest, NamesTheLikelyDelimiter) {
  ExpectViolation(Spec("a,b\n1,2\n", "delimiter: ';'"), "csv.train", "give csv.delimiter: ','");
}

TEST_F(CsvTest, FeaturesAreStandardisedFromTheData) {
  v1::DatasetSpec spec = Spec("a,b,y\n1,10,0\n3,10,0\n");
  spec.mutable_normalization()->set_from_data(true);
  const OpenedDataset opened = Open(spec);
  EXPECT_THAT(opened.info.normalization.mean, ElementsAre(2, 10));
  // A column without variation is divided by 1.
  EXPECT_THAT(opened.info.normalization.standard_deviation, ElementsAre(1, 1));
}

}  // namespace
}  // namespace tandem
