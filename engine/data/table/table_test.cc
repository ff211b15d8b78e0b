// The cells of tables: kinds, missing cells, and the inputs of a network.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/philox.h"
#include "engine/data/table/cell.h"
#include "engine/data/table/column_profile.h"
#include "engine/data/table/table_encoder.h"
#include "engine/data/table/table_fit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

ColumnProfile ProfileOf(const std::vector<std::string>& cells,
                        v1::ColumnKind wanted = v1::COLUMN_KIND_UNSPECIFIED) {
  ColumnProfile profile({}, wanted);
  int64_t row = 1;
  for (const std::string& cell : cells) profile.Add(++row, cell);
  return profile;
}

// Fits a column to `cells`, and returns the inputs of `raw`.
std::vector<float> Inputs(ColumnPlan plan, const std::vector<std::string>& cells, const std::string& raw) {
  ColumnFit fit(plan, {});
  for (const std::string& cell : cells) fit.Add(cell);
  v1::TablePreparation preparation;
  *preparation.add_columns() = *fit.Finish();
  EXPECT_TRUE(CheckPreparation(preparation).ok());
  const TableEncoder encoder(preparation);
  std::vector<float> inputs;
  EXPECT_TRUE(encoder.Encode(0, raw, &inputs).ok()) << raw;
  EXPECT_EQ(static_cast<int64_t>(inputs.size()), encoder.inputs());
  return inputs;
}

TEST(CellTest, NumbersMayHaveADecimalComma) {
  double number = 0;
  EXPECT_TRUE(ParseCsvNumber(" +1,5 ", true, &number));
  EXPECT_EQ(number, 1.5);
  EXPECT_FALSE(ParseCsvNumber("1,5", false, &number));
  EXPECT_FALSE(ParseCsvNumber("1.234,5", true, &number));
  EXPECT_FALSE(ParseCsvNumber("1,5,6", true, &number));
  EXPECT_FALSE(ParseCsvNumber(std::string(70, '1') + ",5", true, &number));
}

TEST(CellTest, ARuleSaysWhichCommasMustGo) {
  EXPECT_EQ(NumberRule("shop", false), "it must be a finite number (at most 3.4e38)");
  EXPECT_EQ(NumberRule("a, b", false), NumberRule("shop", false));
  EXPECT_EQ(NumberRule("75,614", true), NumberRule("shop", false));
  for (const char* text : {"75,614", " -1,234.5", "1,234,567"}) {
    EXPECT_THAT(NumberRule(text, false), HasSubstr("remove commas between thousands, and write a point"))
        << text;
  }
}

TEST(CellTest, CommasBetweenThousandsProveNoDecimalComma) {
  for (const char* text : {"1,234", " -12,345 ", "+123,456", "1,234,567", "1,234.5", "1,234,567.89"}) {
    EXPECT_TRUE(HasThousandsMarks(text, false)) << text;
    EXPECT_THAT(std::string(DecimalCommaAdvice(text, false)), HasSubstr("csv.decimal_comma: true")) << text;
    EXPECT_EQ(DecimalCommaAdvice(text, true), "") << text;
  }
  for (const char* text : {"1,5", "0,125", "12,34", "1,2345", "1234,567", "1,234e2", ",125", "1.234",
                           "1,23.4", "", "-", "1", "1,", "1,234x"}) {
    EXPECT_FALSE(HasThousandsMarks(text, false)) << text;
    EXPECT_EQ(DecimalCommaAdvice(text, false), "") << text;
  }
}

TEST(CellTest, PointsBetweenThousandsAreNoDecimalPoints) {
  double number = 0;
  for (const char* text : {"1.234", " -12.345 ", "+123.456", "1.234.567", "1.234,5", "1.234.567,89"}) {
    EXPECT_TRUE(HasThousandsMarks(text, true)) << text;
    EXPECT_FALSE(ParseCsvNumber(text, true, &number)) << text;
    EXPECT_THAT(NumberRule(text, true), HasSubstr("remove points between thousands")) << text;
  }
  // Other points are decimal points, and so are all points of a table without decimal commas.
  for (const char* text : {"1.5", "0.125", "-0.125", "12.34", "1.2345", "1234.567", "1.234e2", ".125"}) {
    EXPECT_FALSE(HasThousandsMarks(text, true)) << text;
    EXPECT_TRUE(ParseCsvNumber(text, true, &number)) << text;
    EXPECT_EQ(number, std::strtod(text, nullptr)) << text;
  }
  EXPECT_TRUE(ParseCsvNumber("1.234", false, &number));
  EXPECT_EQ(number, 1.234);
  for (const char* text : {"", "-", "1", "1234", "1.", "1.23,4", "1.234x", "1,234"}) {
    EXPECT_FALSE(HasThousandsMarks(text, true)) << text;
  }
}

TEST(CellTest, NumbersAreTheNearest) {
  RandomStream random(1, RandomPurpose::kSweep, 0, 0);
  for (int i = 0; i < 200000; ++i) {
    std::string text = i % 3 == 0 ? "-" : "";
    const uint32_t digits = 1 + random.NextBelow(21), point = random.NextBelow(24);
    for (uint32_t k = 0; k < digits; ++k) {
      if (k == point) text += '.';
      text += static_cast<char>('0' + random.NextBelow(10));
    }
    if (i % 7 == 0) absl::StrAppend(&text, "e", static_cast<int>(random.NextBelow(30)) - 15);
    double number = 1e300;
    ASSERT_TRUE(ParseCsvNumber(text, false, &number)) << text;
    ASSERT_EQ(number, std::strtod(text.c_str(), nullptr)) << text;
  }
  double number = 1;
  EXPECT_TRUE(ParseCsvNumber("-0", false, &number));
  EXPECT_TRUE(number == 0 && std::signbit(number));
  for (const char* text :
       {"9007199254740993", "9007199254740993.0", "5.", "1e3", "000000000000000000001.5"}) {
    EXPECT_TRUE(ParseCsvNumber(text, false, &number)) << text;
    EXPECT_EQ(number, std::strtod(text, nullptr)) << text;
  }
  for (const char* text : {"1e-400", "-2.5e-1000", "0.0e-400"}) {
    number = 1;
    EXPECT_TRUE(ParseCsvNumber(text, false, &number)) << text;
    EXPECT_EQ(number, 0) << text;
  }
  for (const char* text :
       {"",    "-",   ".",    "1e400", "-1e400", "1e-400x", "-.",   "1..2", "1-2",  "--1",   "1 2", "1e",
        "nan", "+-1", "+-.5", "++1",   "-+1",    "1e39",    "0x10", "0X1F", "-0x1", "0x1p3", "0x"}) {
    EXPECT_FALSE(ParseCsvNumber(text, false, &number)) << text;
  }
}

TEST(CellTest, DatesHaveSeveralForms) {
  for (const char* text : {"2024-05-31", "2024/05/31", "31.05.2024", "05/31/2024", " 2024-5-31 "}) {
    const std::optional<TableDate> date = ParseTableDate(text, false);
    ASSERT_TRUE(date.has_value()) << text;
    EXPECT_EQ(date->Text(), "2024-05-31");
    EXPECT_EQ(date->Weekday(), 4) << "a Friday";
    EXPECT_EQ(date->Days(), 19874);
    EXPECT_FALSE(date->has_time);
  }
  EXPECT_EQ(ParseTableDate("31/05/2024", true)->Text(), "2024-05-31");
  EXPECT_TRUE(ParseTableDate("04/05/2024", true)->is_ambiguous);
  EXPECT_EQ(ParseTableDate("2024-05-31T18:30:00Z", false)->hour, 18.5);
  EXPECT_EQ(ParseTableDate("2024-05-31 06:45", false)->hour, 6.75);
  for (const char* text : {"2023-02-29", "31/05/2024", "2024-13-01", "2024-05-31x", "2024-05-31 25:00",
                           "1.5.24", "12345678", "2024-05", "Dec-25-2024"}) {
    EXPECT_FALSE(ParseTableDate(text, false).has_value()) << text;
  }
}

TEST(ColumnProfileTest, KindsAreFound) {
  EXPECT_EQ(ProfileOf({"1", "", "2.5"}).Kind(), v1::COLUMN_KIND_NUMBER);
  EXPECT_EQ(ProfileOf({"1", "NA", "?"}).missing(), 2);
  EXPECT_EQ(ProfileOf({"red", "blue", "red", "blue"}).Kind(), v1::COLUMN_KIND_CATEGORY);
  EXPECT_EQ(ProfileOf({"red", "blue", "green"}).Kind(), v1::COLUMN_KIND_TEXT) << "texts do not repeat";
  EXPECT_EQ(ProfileOf({"2024-01-01", "2024-01-02"}).Kind(), v1::COLUMN_KIND_DATE);
  EXPECT_EQ(ProfileOf({"", "NA"}).Kind(), v1::COLUMN_KIND_IGNORED);
  EXPECT_EQ(ProfileOf({"x", "x"}).Kind(), v1::COLUMN_KIND_IGNORED);
  EXPECT_EQ(ProfileOf({"1", "2"}, v1::COLUMN_KIND_CATEGORY).Kind(), v1::COLUMN_KIND_CATEGORY);
  // Hexadecimal texts are names.
  EXPECT_EQ(ProfileOf({"0x10", "0x1f", "0x10", "0x1f"}).Kind(), v1::COLUMN_KIND_CATEGORY);
  EXPECT_EQ(ProfileOf({"0x10", "0x1f", "0x2a"}).Kind(), v1::COLUMN_KIND_TEXT);
  EXPECT_TRUE(ProfileOf({"31/05/2024", "01/02/2024"}).day_first());
  EXPECT_FALSE(ProfileOf({"05/31/2024", "01/02/2024"}).day_first());
  EXPECT_TRUE(ProfileOf({"05/03/2024", "01/02/2024"}).is_order_unknown());
}

TEST(ColumnProfileTest, KindsDoNotDependOnTheOrderOfRows) {
  // A fifth is text, so the column has no mistakes among numbers. It has eight different cells.
  std::vector<std::string> cells(1500, "x");
  cells.resize(3000, "y");
  for (int i = 0; i < 12000; ++i) cells.push_back(absl::StrCat(i % 6));
  EXPECT_EQ(ProfileOf(cells).Kind(), v1::COLUMN_KIND_CATEGORY) << "texts first";
  EXPECT_EQ(ProfileOf(cells).distinct(), 8);
  std::reverse(cells.begin(), cells.end());
  EXPECT_EQ(ProfileOf(cells).Kind(), v1::COLUMN_KIND_CATEGORY) << "numbers first";
  EXPECT_EQ(ProfileOf(cells).distinct(), 8);
}

TEST(ColumnProfileTest, CellsAreKeptOnlyForCategories) {
  for (const int different : {100, 101}) {
    std::vector<std::string> cells;
    for (int i = 0; i < 1000; ++i) cells.push_back(absl::StrCat("c", i % different));
    const ColumnProfile profile = ProfileOf(cells);
    const bool are_few = different == 100;
    EXPECT_EQ(profile.Kind(), are_few ? v1::COLUMN_KIND_CATEGORY : v1::COLUMN_KIND_TEXT);
    EXPECT_EQ(profile.distinct(), are_few ? 100 : 0);
    EXPECT_EQ(ProfileOf(cells, v1::COLUMN_KIND_CATEGORY).distinct(), different);
  }
  std::vector<std::string> numbers;
  for (int i = 0; i < 20000; ++i) numbers.push_back(absl::StrCat(i));
  EXPECT_EQ(ProfileOf(numbers).distinct(), 0);
  EXPECT_EQ(ProfileOf(numbers, v1::COLUMN_KIND_CATEGORY).distinct(), ColumnProfile::kMostDistinct);
}

TEST(ColumnProfileTest, AMistakeAmongNumbersIsNoCategory) {
  std::vector<std::string> cells(30, "1");
  cells.emplace_back("1O");
  EXPECT_THAT(
      ProfileOf(cells).Fault("'a'"),
      HasSubstr("row 32, column 'a' is '1O'; it must be a finite number (at most 3.4e38), because the "
                "column holds numbers in 30 other rows"));
  EXPECT_THAT(ProfileOf({"1", "-", "-", "2"}).Fault("'a'"), HasSubstr("row 3, column 'a' is '-'"));
  EXPECT_THAT(ProfileOf({"1e39", "2e39"}).Fault("'a'"), HasSubstr("row 2, column 'a' is '1e39'"));
  // Tickets of text and numbers.
  EXPECT_EQ(ProfileOf({"1", "PC 2", "3", "PC 4", "5", "6"}).Kind(), v1::COLUMN_KIND_TEXT);
}

TEST(ColumnProfileTest, PointsBetweenThousandsMakeNoText) {
  ColumnProfile profile({.decimal_comma = true}, v1::COLUMN_KIND_UNSPECIFIED);
  for (int row = 1; row <= 300; ++row) profile.Add(row, absl::StrCat(row, ".500"));
  profile.Add(301, "-");
  EXPECT_EQ(profile.Kind(), v1::COLUMN_KIND_NUMBER);
  EXPECT_THAT(profile.Fault("'a'"), HasSubstr("row 1, column 'a' is '1.500'; it must be a finite number (at "
                                              "most 3.4e38; in a table with decimal commas, remove points"));
}

TEST(ColumnProfileTest, CommasBetweenThousandsMakeNoText) {
  ColumnProfile profile({}, v1::COLUMN_KIND_UNSPECIFIED);
  for (int row = 1; row <= 300; ++row) profile.Add(row, absl::StrCat(row, ",500"));
  EXPECT_EQ(profile.Kind(), v1::COLUMN_KIND_NUMBER);
  EXPECT_THAT(profile.Fault("'a'"),
              AllOf(HasSubstr("row 1, column 'a' is '1,500'; it must be a finite number "
                              "(at most 3.4e38; remove commas between thousands"),
                    HasSubstr("or give csv.decimal_comma: true")));
}

TEST(TableFitTest, NumbersAreFilledAndScaled) {
  ColumnPlan plan{.name = "a", .missing_indicator = true, .scaling = v1::NUMBER_SCALING_STANDARD};
  const std::vector<std::string> cells = {"1", "3", "", "8"};
  EXPECT_THAT(Inputs(plan, cells, "4"), ElementsAre(0, 0)) << "the mean";
  // The median 3; the deviation is sqrt(26 / 3).
  EXPECT_THAT(Inputs(plan, cells, "NA"), ElementsAre(FloatNear(-0.33968312F, 1e-6), 1));
  plan.scaling = v1::NUMBER_SCALING_NONE;
  EXPECT_THAT(Inputs(plan, {"9", "4", "1", "6"}, ""), ElementsAre(5, 1)) << "the median of an even number";
  plan.scaling = v1::NUMBER_SCALING_STANDARD;
  plan.missing = v1::MISSING_VALUES_MEAN;
  EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(0, 1));
  plan.missing = v1::MISSING_VALUES_CONSTANT;
  plan.constant = "4";
  EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(0, 1));
  plan.scaling = v1::NUMBER_SCALING_NONE;
  plan.missing = v1::MISSING_VALUES_MOST_FREQUENT;
  EXPECT_THAT(Inputs(plan, {"5", "7", "7", "5"}, ""), ElementsAre(5, 1)) << "the smaller of two";
  plan.missing = v1::MISSING_VALUES_CONSTANT;
  plan.constant = "four";
  EXPECT_THAT(std::string(ColumnFit(plan, {}).Finish().status().message()),
              HasSubstr("column 'a' has the constant 'four'; it must be a finite number"));
}

// Sums of 0.1 round, but a column that does not vary becomes 0.
TEST(TableFitTest, AColumnThatDoesNotVaryBecomesZero) {
  for (const v1::NumberScaling scaling : {v1::NUMBER_SCALING_STANDARD, v1::NUMBER_SCALING_QUANTILES}) {
    const ColumnPlan plan{.name = "a", .missing = v1::MISSING_VALUES_MEAN, .scaling = scaling};
    for (const int rows : {1, 3, 10, 1000}) {
      const std::vector<std::string> cells(rows, "0.1");
      EXPECT_THAT(Inputs(plan, cells, "0.1"), ElementsAre(0)) << rows;
      EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(0)) << rows;
      // Later rows may differ. The deviation is 1.
      EXPECT_THAT(Inputs(plan, cells, "0.6"), ElementsAre(0.5)) << rows;
    }
  }
}

TEST(TableFitTest, QuantilesAreRanks) {
  const ColumnPlan plan{.name = "a", .scaling = v1::NUMBER_SCALING_QUANTILES};
  const std::vector<std::string> cells = {"1", "10", "100", "1000", "10000"};
  constexpr float kEnd = 1.7320508F;
  EXPECT_THAT(Inputs(plan, cells, "1"), ElementsAre(FloatNear(-kEnd, 1e-6)));
  EXPECT_THAT(Inputs(plan, cells, "100"), ElementsAre(FloatNear(0, 1e-6)));
  EXPECT_THAT(Inputs(plan, cells, "550"), ElementsAre(FloatNear(kEnd / 4, 1e-6)));
  EXPECT_THAT(Inputs(plan, cells, "-5"), ElementsAre(FloatNear(-kEnd, 1e-6)));
  EXPECT_THAT(Inputs(plan, cells, "1e6"), ElementsAre(FloatNear(kEnd, 1e-6)));
  EXPECT_THAT(Inputs(plan, {"3", "3"}, "3"), ElementsAre(0)) << "a column that does not vary";
  // Few numbers are the quantiles themselves, although a double does not have each place exactly.
  for (const int count : {23, 50, 116}) {
    ColumnFit fit(plan, {});
    for (int i = 0; i < count; ++i) fit.Add(absl::StrCat(i));
    const v1::PreparedColumn column = *fit.Finish();
    ASSERT_EQ(column.numbers(0).quantiles_size(), count);
    for (int i = 0; i < count; ++i) EXPECT_EQ(column.numbers(0).quantiles(i), i);
  }
}

TEST(TableFitTest, CategoriesHaveAnInputForOthers) {
  ColumnPlan plan{.name = "a", .kind = v1::COLUMN_KIND_CATEGORY, .category_inputs = 2};
  const std::vector<std::string> cells = {"red", "blue", "red", "green", "blue", ""};
  EXPECT_THAT(Inputs(plan, cells, "blue"), ElementsAre(1, 0, 0));
  EXPECT_THAT(Inputs(plan, cells, " red "), ElementsAre(0, 1, 0));
  EXPECT_THAT(Inputs(plan, cells, "green"), ElementsAre(0, 0, 1)) << "too rare";
  EXPECT_THAT(Inputs(plan, cells, "pink"), ElementsAre(0, 0, 1)) << "unseen";
  EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(0, 0, 0)) << "no category, and no other name";
  plan.missing_indicator = true;
  EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(0, 0, 0, 1));
  plan.missing = v1::MISSING_VALUES_MOST_FREQUENT;
  EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(1, 0, 0, 1)) << "blue, the first of two";
  plan.missing = v1::MISSING_VALUES_CONSTANT;
  plan.constant = "red";
  EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(0, 1, 0, 1));
}

TEST(TableFitTest, DatesBecomeParts) {
  ColumnPlan plan{.name = "a", .kind = v1::COLUMN_KIND_DATE};
  const std::vector<std::string> cells = {"2023-01-02", "2024-05-31", ""};
  EXPECT_THAT(Inputs(plan, cells, "2024-05-31"), ElementsAre(2024, 5, 31, 4));
  plan.has_time = true;
  EXPECT_THAT(Inputs(plan, cells, "2024-05-31 18:30"), ElementsAre(2024, 5, 31, 4, 18.5));
}

// Returns the days since 1970-01-01 of a date from 1970 on. Counts them year by year and month by month.
int DaysOf(int year, int month, int day) {
  const auto is_leap = [](int y) { return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0); };
  int days = day - 1;
  for (int y = 1970; y < year; ++y) days += is_leap(y) ? 366 : 365;
  for (int m = 1; m < month; ++m) {
    days += m == 2 ? (is_leap(year) ? 29 : 28) : m == 4 || m == 6 || m == 9 || m == 11 ? 30 : 31;
  }
  return days;
}

// Returns 0 for Monday. 1970-01-01 was a Thursday.
float WeekdayOf(int year, int month, int day) {
  return static_cast<float>((DaysOf(year, month, day) + 3) % 7);
}

TEST(TableFitTest, AMissingDateGetsAWholeDate) {
  ASSERT_EQ(WeekdayOf(2000, 2, 29), 1) << "a Tuesday";
  ColumnPlan plan{.name = "a", .kind = v1::COLUMN_KIND_DATE};
  const std::vector<std::string> winter = {"2024-06-15", "2023-12-31", "",
                                           "2024-07-20", "2023-12-30", "2024-01-01"};
  for (const v1::NumberScaling scaling : {v1::NUMBER_SCALING_NONE, v1::NUMBER_SCALING_QUANTILES}) {
    plan.scaling = scaling;
    for (const v1::MissingValues missing : {v1::MISSING_VALUES_UNSPECIFIED, v1::MISSING_VALUES_MEDIAN}) {
      plan.missing = missing;
      EXPECT_EQ(Inputs(plan, winter, ""), Inputs(plan, winter, "2024-01-01"));
    }
  }
  plan.scaling = v1::NUMBER_SCALING_NONE;
  EXPECT_THAT(Inputs(plan, winter, ""), ElementsAre(2024, 1, 1, WeekdayOf(2024, 1, 1)));
  const std::vector<std::string> even = {"2024-03-05", "2023-12-31", "2024-02-29", "2020-01-01"};
  EXPECT_THAT(Inputs(plan, even, ""), ElementsAre(2023, 12, 31, WeekdayOf(2023, 12, 31)))
      << "the earlier of the middle dates";

  plan.missing = v1::MISSING_VALUES_MOST_FREQUENT;
  EXPECT_THAT(Inputs(plan,
                     {"2024-01-11", "2023-05-10", "2024-02-12", "2023-05-10", "2024-03-13", "2023-05-10",
                      "2024-04-14"},
                     ""),
              ElementsAre(2023, 5, 10, WeekdayOf(2023, 5, 10)));
  EXPECT_THAT(Inputs(plan, even, ""), ElementsAre(2020, 1, 1, WeekdayOf(2020, 1, 1))) << "the earliest";

  plan.missing = v1::MISSING_VALUES_MEAN;
  int64_t days = 0;
  for (const auto& [year, month, day] :
       {std::array{2024, 6, 15}, {2023, 12, 31}, {2024, 7, 20}, {2023, 12, 30}, {2024, 1, 1}}) {
    days += DaysOf(year, month, day);
  }
  ASSERT_EQ((2 * days + 5) / 10, DaysOf(2024, 3, 14)) << "the rounded mean";
  EXPECT_THAT(Inputs(plan, winter, ""), ElementsAre(2024, 3, 14, WeekdayOf(2024, 3, 14)));
  EXPECT_THAT(Inputs(plan, {"2023-12-31", "2024-01-01"}, ""), ElementsAre(2024, 1, 1, WeekdayOf(2024, 1, 1)))
      << "the later of two nearest days";
  EXPECT_THAT(Inputs(plan, {"1969-12-30", "1969-12-29", "1969-12-30"}, ""), ElementsAre(1969, 12, 30, 1));
}

TEST(TableFitTest, AMissingMomentGetsAWholeMoment) {
  ColumnPlan plan{.name = "a", .kind = v1::COLUMN_KIND_DATE, .has_time = true};
  const std::vector<std::string> cells = {"2024-01-01 00:30", "2023-12-31 23:00", "2023-12-31 22:20", ""};
  plan.missing = v1::MISSING_VALUES_MEDIAN;
  EXPECT_THAT(Inputs(plan, cells, ""), ElementsAre(2023, 12, 31, WeekdayOf(2023, 12, 31), 23));
  plan.missing = v1::MISSING_VALUES_MOST_FREQUENT;
  EXPECT_THAT(Inputs(plan, {"2024-01-01 07:30", "2024-01-02", "2024-01-01 08:00", "2024-01-02"}, ""),
              ElementsAre(2024, 1, 2, WeekdayOf(2024, 1, 2), 0));
  plan.missing = v1::MISSING_VALUES_MEAN;
  // 90, 0 and -40 minutes after 23:00 have the mean 1000 seconds.
  EXPECT_THAT(Inputs(plan, cells, ""),
              ElementsAre(2023, 12, 31, WeekdayOf(2023, 12, 31), FloatNear(23 + 1000 / 3600.0F, 1e-5)));
  // A third of an hour is rounded, but the mean is midnight.
  EXPECT_THAT(Inputs(plan, {"2023-12-31 23:40", "2024-01-01 00:10", "2024-01-01 00:10"}, ""),
              ElementsAre(2024, 1, 1, WeekdayOf(2024, 1, 1), 0));
}

TEST(TableEncoderTest, RefusesWhatDoesNotFit) {
  v1::TablePreparation preparation;
  *preparation.add_columns() = Unfitted({.name = "a", .missing = v1::MISSING_VALUES_REFUSE});
  *preparation.add_columns() = Unfitted({.name = "b", .kind = v1::COLUMN_KIND_DATE});
  const TableEncoder encoder(preparation);
  EXPECT_EQ(encoder.inputs(), 5);
  std::vector<float> inputs;
  EXPECT_THAT(std::string(encoder.Encode(0, "", &inputs).message()),
              HasSubstr("is empty, but missing cells are refused"));
  EXPECT_THAT(std::string(encoder.Encode(0, "x", &inputs).message()),
              HasSubstr("is 'x'; it must be a finite"));
  EXPECT_THAT(std::string(encoder.Encode(1, "x", &inputs).message()), HasSubstr("is 'x'; it must be a date"));
  preparation.mutable_columns(0)->mutable_numbers(0)->set_deviation(1e-30);
  EXPECT_THAT(std::string(TableEncoder(preparation).Encode(0, "1e20", &inputs).message()),
              HasSubstr("too far from the training rows' numbers"));
}

TEST(TableEncoderTest, ChecksAPreparationFromAFile) {
  const auto check = [](auto change) {
    v1::TablePreparation preparation;
    *preparation.add_columns() = Unfitted({.name = "a"});
    change(preparation);
    return CheckPreparation(preparation).ok();
  };
  EXPECT_TRUE(check([](v1::TablePreparation&) {}));
  EXPECT_FALSE(check([](auto& p) { p.mutable_columns(0)->clear_numbers(); }));
  EXPECT_FALSE(check([](auto& p) { p.mutable_columns(0)->clear_kind(); }));
  EXPECT_FALSE(check([](auto& p) { p.mutable_columns(0)->mutable_numbers(0)->set_deviation(0); }));
  EXPECT_FALSE(check([](auto& p) { p.mutable_columns(0)->mutable_numbers(0)->set_fill(INFINITY); }));
  EXPECT_FALSE(check([](auto& p) {
    p.mutable_columns(0)->mutable_numbers(0)->add_quantiles(2);
    p.mutable_columns(0)->mutable_numbers(0)->add_quantiles(1);
  }));
  EXPECT_FALSE(check([](auto& p) {
    p.mutable_columns(0)->set_kind(v1::COLUMN_KIND_CATEGORY);
    p.mutable_columns(0)->set_category_inputs(int64_t{1} << 40);
  }));
  EXPECT_FALSE(check([](auto& p) { p.set_target_deviation(-1); }));
}

}  // namespace
}  // namespace tandem
