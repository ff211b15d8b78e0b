#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "engine/data/statistics.h"
#include "engine/data/subset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::SizeIs;

v1::DatasetSpec Spec(const std::string& more) {
  return FromText<v1::DatasetSpec>("synthetic { shape: [2, 3, 4] classes: 3 train_samples: 100 } " + more);
}

std::vector<std::vector<uint8_t>> Rows(const Dataset& dataset) {
  const std::vector<uint8_t> all = Samples<uint8_t>(dataset);
  std::vector<std::vector<uint8_t>> rows;
  for (size_t i = 0; i < all.size(); i += 24) rows.emplace_back(all.begin() + i, all.begin() + i + 24);
  return rows;
}

TEST(SplitTest, SetsPartOfTheTrainingSamplesAside) {
  const absl::StatusOr<OpenedDataset> whole = OpenDataset(Spec(""));
  const absl::StatusOr<OpenedDataset> split =
      OpenDataset(Spec("validation_split { fraction: 0.254 seed: 3 }"));
  ASSERT_TRUE(whole.ok() && split.ok()) << split.status();
  EXPECT_EQ(split->info.train_samples, 75);
  EXPECT_EQ(split->info.validation_samples, 25);
  std::vector<std::vector<uint8_t>> parts = Rows(*split->train);
  const std::vector<std::vector<uint8_t>> validation = Rows(*split->validation);
  EXPECT_EQ(parts.size(), 75);
  parts.insert(parts.end(), validation.begin(), validation.end());
  std::vector<std::vector<uint8_t>> all = Rows(*whole->train);
  std::sort(parts.begin(), parts.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(parts, all);

  // The split depends on the seed alone.
  EXPECT_EQ(Rows(*OpenDataset(Spec("validation_split { fraction: 0.25 seed: 3 }"))->validation), validation);
  EXPECT_NE(Rows(*OpenDataset(Spec("validation_split { fraction: 0.25 seed: 4 }"))->validation), validation);
}

TEST(SplitTest, StratifiedTakesTheSameShareOfEachClass) {
  const absl::StatusOr<OpenedDataset> whole = OpenDataset(Spec(""));
  const v1::DatasetSpec spec = Spec("validation_split { fraction: 0.3 seed: 3 stratified: true }");
  const absl::StatusOr<OpenedDataset> split = OpenDataset(spec);
  ASSERT_TRUE(whole.ok() && split.ok()) << split.status();
  EXPECT_EQ(split->validation->size(), 30);
  const std::vector<int64_t> all = *CountClasses(*whole->train, whole->info);
  const std::vector<int64_t> left = *CountClasses(*split->train, split->info);
  ASSERT_THAT(all, ElementsAre(Gt(0), Gt(0), Gt(0)));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_LT(std::abs(all[i] * 0.7 - left[i]), 1);
  // The samples that are counted as they are read are those of training.
  const absl::StatusOr<TrainingCounts> counts = CountTraining(spec, *DescribeDataset(spec));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->classes, left);
}

TEST(SplitTest, StratifiedDependsOnNoNumbersOfClasses) {
  std::vector<int32_t> labels, others;
  for (int i = 0; i < 40; ++i) {
    labels.push_back(i * i % 7);
    others.push_back(100 - labels.back());
  }
  const SplitIndices split = SplitStratified(labels, 13, 5);
  EXPECT_EQ(SplitStratified(others, 13, 5).validation, split.validation);
  EXPECT_NE(SplitStratified(labels, 13, 6).validation, split.validation);
  EXPECT_THAT(split.validation, SizeIs(13));
  EXPECT_THAT(split.train, SizeIs(27));
}

TEST(SplitTest, LimitsComeAfterIt) {
  const v1::DatasetSpec spec = Spec("validation_split { fraction: 0.5 } train_limit: 7 validation_limit: 60");
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->train->size(), 7);
  EXPECT_EQ(opened->validation->size(), 50);
  EXPECT_EQ(DescribeDataset(spec)->train_samples, 7);
  EXPECT_EQ(DescribeDataset(spec)->validation_samples, 50);
}

TEST(SplitTest, NamesTheFieldsAtFault) {
  ExpectViolation(Spec("validation_split {}"), "validation_split.fraction", "is 0; it must be above 0");
  ExpectViolation(Spec("validation_split { fraction: 1 }"), "validation_split.fraction", "below 1");
  ExpectViolation(Spec("validation_limit: -1"), "validation_limit", "is -1");
  ExpectViolation(Spec("validation_split { fraction: 0.5 group_column: 'a' }"),
                  "validation_split.group_column", "needs a table");
  v1::DatasetSpec values = Spec("validation_split { fraction: 0.5 stratified: true }");
  values.mutable_synthetic()->clear_classes();
  values.mutable_synthetic()->set_values(2);
  ExpectViolation(values, "validation_split.stratified", "the targets are values, not classes");
  v1::DatasetSpec both = Spec("validation_split { fraction: 0.1 }");
  both.mutable_synthetic()->set_validation_samples(5);
  ExpectViolation(both, "validation_split", "has validation samples of its own");
  ExpectViolation(Spec("class_names: ['a', 'b']"), "class_names",
                  "gives 2 names, but the data set has 3 classes");
}

TEST(StatisticsTest, OfBytesAndOfFloats) {
  const v1::DatasetSpec spec = Spec("normalization { from_data: true }");
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::vector<uint8_t> samples = Samples<uint8_t>(*opened->train);
  for (int c = 0; c < 2; ++c) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (i / 12 % 2 != static_cast<size_t>(c)) continue;
      sum += samples[i] / 255.0;
      squares += samples[i] / 255.0 * samples[i] / 255.0;
    }
    const double mean = sum / 1200;
    EXPECT_NEAR(opened->info.normalization.mean[c], mean, 1e-9);
    EXPECT_NEAR(opened->info.normalization.standard_deviation[c], std::sqrt(squares / 1200 - mean * mean),
                1e-9);
  }
  EXPECT_THAT(DescribeDataset(spec)->normalization.mean, ElementsAre(0, 0));
  const std::vector<int64_t> counts = *CountClasses(*opened->train, opened->info);
  ASSERT_EQ(counts.size(), 3);
  EXPECT_FALSE(RangeOfTargets(*opened->train, opened->info)->has_value());
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 100);
}

TEST(SyntheticTest, ValuesAreWeightsOfPatterns) {
  v1::DatasetSpec spec = Spec("");
  spec.mutable_synthetic()->set_values(2);
  ExpectViolation(spec, "synthetic.classes", "leave it out");
  spec.mutable_synthetic()->clear_classes();
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.target_type, TargetKind::kValues);
  EXPECT_EQ(opened->info.target_shape, Shape({2}));
  EXPECT_EQ(opened->info.classes, 0);
  const std::vector<float> targets = Targets<float>(*opened->train);
  for (const float target : targets) EXPECT_TRUE(target >= 0 && target < 1);
  const std::optional<Range> range = *RangeOfTargets(*opened->train, opened->info);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->least, *std::min_element(targets.begin(), targets.end()));
  EXPECT_EQ(range->largest, *std::max_element(targets.begin(), targets.end()));
}

TEST(SyntheticTest, TokensFollowFromTheOnesBefore) {
  v1::DatasetSpec spec = Spec("");
  spec.mutable_synthetic()->clear_shape();
  spec.mutable_synthetic()->add_shape(50);
  spec.mutable_synthetic()->clear_classes();
  spec.mutable_synthetic()->set_vocabulary(11);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.sample_type, SampleType::kTokens);
  EXPECT_EQ(opened->info.target_type, TargetKind::kTokens);
  EXPECT_EQ(opened->info.classes, 11);
  EXPECT_EQ(opened->info.target_shape, Shape({50}));
  const std::vector<int32_t> tokens = Samples<int32_t>(*opened->train);
  const std::vector<int32_t> next = Targets<int32_t>(*opened->train);
  std::vector<std::vector<int>> counts(11, std::vector<int>(11));
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i % 50 < 49) {
      ASSERT_EQ(next[i], tokens[i + 1]);
    }
    ++counts[tokens[i]][next[i]];
  }
  int regular = 0;
  for (const std::vector<int>& row : counts) regular += *std::max_element(row.begin(), row.end());
  EXPECT_NEAR(regular / 5000.0, 1 - 1.0 / 8 * 10 / 11, 0.03);
  spec.mutable_normalization();
  ExpectViolation(spec, "normalization", "the samples are tokens");
}

}  // namespace
}  // namespace tandem
