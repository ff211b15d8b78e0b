// Validation splits of tables.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
using ::testing::SizeIs;

using CsvSplitTest = CsvFixture;

TEST_F(CsvSplitTest, SplitsAreStratifiedGroupedAndChronological) {
  std::string table = "x,g,y\n";
  for (int i = 0; i < 40; ++i) {
    table += std::to_string(i) + ",g" + std::to_string(i / 4) + (i % 10 == 0 ? ",rare\n" : ",often\n");
  }
  const auto split = [&](const std::string& how) {
    return Open(Spec(table, "feature_columns: 'x'", "validation_split { fraction: 0.25 " + how + " }"));
  };
  const std::vector<int32_t> labels = Targets<int32_t>(*split("stratified: true seed: 3").validation);
  ASSERT_THAT(labels, SizeIs(10));
  EXPECT_EQ(std::count(labels.begin(), labels.end(), 1), 1) << "a quarter of 4 rare rows";
  const std::vector<float> grouped = Samples<float>(*split("group_column: 'g' seed: 5").validation);
  ASSERT_THAT(grouped, SizeIs(::testing::AnyOf(8, 12)));
  for (size_t i = 0; i < grouped.size(); i += 4) {
    EXPECT_EQ(static_cast<int>(grouped[i]) % 4, 0);
    EXPECT_EQ(grouped[i + 3], grouped[i] + 3) << "whole groups";
  }
  EXPECT_THAT(Samples<float>(*split("time_column: 'x'").validation),
              ElementsAre(30, 31, 32, 33, 34, 35, 36, 37, 38, 39));
  ExpectViolation(Spec(table, "", "validation_split { fraction: 0.5 time_column: 'y' }"),
                  "validation_split.time_column", "it must be a number or a date");
  ExpectViolation(Spec(table, "", "validation_split { fraction: 0.5 group_column: 'z' }"),
                  "validation_split.group_column", "the table has no such column");
  ExpectViolation(Spec("x,y\n1,2\n3,4\n", "", "validation_split { fraction: 0.5 stratified: true }"),
                  "validation_split.stratified", "the target is no class");
  ExpectViolation(Spec(table, "", "validation_split { fraction: 0.5 stratified: true time_column: 'x' }"),
                  "validation_split", "give one of them");
}

TEST_F(CsvSplitTest, NumbersAmongDatesHaveNoOrder) {
  const std::string split = "validation_split { fraction: 0.33 time_column: 't' }";
  const std::string numbers_first = "t,x,y\n2019,1,1\n2020,2,2\n2021-03-01,3,3\n2022-05-01,4,4\n2024,5,5\n";
  ExpectViolation(Spec(numbers_first, "", split), "validation_split.time_column",
                  "row 2, column 't' is '2019', a number, and ");
  ExpectViolation(
      Spec(numbers_first, "", split), "validation_split.time_column",
      "row 4, column 't' is '2021-03-01', a date; write all cells of the column as numbers, or all "
      "as dates such as 2024-05-31");
  const std::string dates_first = "t,x,y\n2021-03-01,1,1\n2022-05-01,2,2\n2024,3,3\n";
  ExpectViolation(Spec(dates_first, "", split), "validation_split.time_column",
                  "row 2, column 't' is '2021-03-01', a date, and ");
  ExpectViolation(Spec(dates_first, "", split), "validation_split.time_column",
                  "row 4, column 't' is '2024', a number; write all");
  const OpenedDataset dates = Open(
      Spec("t,x,y\n2022-05-01,1,1\n2024/01/02,2,2\n2021-03-01 12:00,3,3\n", "feature_columns: 'x'", split));
  EXPECT_THAT(Targets<float>(*dates.validation), ElementsAre(2));
}

TEST_F(CsvSplitTest, AStratifiedSplitLeavesARareClassInTraining) {
  // The shares are half a row and 1.5 rows.
  const std::string table = "x,y\n1,rare\n2,often\n3,often\n4,often\n";
  for (int seed = 0; seed < 5; ++seed) {
    const OpenedDataset opened = Open(Spec(
        table, "", absl::StrCat("validation_split { fraction: 0.5 stratified: true seed: ", seed, " }")));
    EXPECT_THAT(Samples<float>(*opened.train), Contains(1));
    EXPECT_THAT(Targets<int32_t>(*opened.validation), SizeIs(2));
  }
}

TEST_F(CsvSplitTest, WholeGroupsComeNearestToTheFraction) {
  const std::vector<int> sizes = {17, 13, 11, 7, 5, 4, 3};
  std::string table = "x,g,y\n";
  for (size_t group = 0; group < sizes.size(); ++group) {
    for (int i = 0; i < sizes[group]; ++i) {
      absl::StrAppend(&table, group, ",g", group, ",", i % 2 == 0 ? "a" : "b", "\n");
    }
  }
  // Bit k of `chosen` says whether group k is taken.
  const auto rows_of = [&](size_t chosen) {
    int64_t rows = 0;
    for (size_t group = 0; group < sizes.size(); ++group)
      rows += (chosen >> group & 1) == 0 ? 0 : sizes[group];
    return rows;
  };
  for (const double fraction : {0.01, 0.1, 0.2, 0.25, 0.35, 0.5, 0.8, 0.99}) {
    const int64_t wanted = std::llround(60 * fraction);
    int64_t nearest = 60;
    for (size_t chosen = 1; chosen + 1 < size_t{1} << sizes.size(); ++chosen) {
      nearest = std::min(nearest, std::abs(rows_of(chosen) - wanted));
    }
    std::set<size_t> seen;
    for (int seed = 0; seed < 20; ++seed) {
      const OpenedDataset opened = Open(Spec(
          table, "feature_columns: 'x'",
          absl::StrCat("validation_split { fraction: ", fraction, " group_column: 'g' seed: ", seed, " }")));
      EXPECT_EQ(std::abs(opened.info.validation_samples - wanted), nearest) << fraction << " " << seed;
      const std::vector<float> inputs = Samples<float>(*opened.validation);
      size_t chosen = 0;
      for (const float group : inputs) chosen |= size_t{1} << std::lround(group);
      EXPECT_EQ(rows_of(chosen), opened.info.validation_samples) << "whole groups";
      seen.insert(chosen);
    }
    if (fraction == 0.5) {
      EXPECT_EQ(seen.size(), 2) << "seeds choose 17 + 13, or the others";
    }
  }
}

TEST_F(CsvSplitTest, WholeGroupsOfALargeTableComeNearestToo) {
  std::string table = "x,g,y\n1,alone,2\n";
  for (int i = 0; i < 120000; ++i) absl::StrAppend(&table, i % 9, ",", i / 2, ",", i % 7, "\n");
  const OpenedDataset opened = Open(
      Spec(table, "feature_columns: 'x'", "validation_split { fraction: 0.5 group_column: 'g' seed: 4 }"));
  EXPECT_EQ(opened.info.validation_samples, 60001);
}

}  // namespace
}  // namespace tandem
