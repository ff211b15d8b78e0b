#include "engine/data/normalization.h"

#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

TEST(NormalizationTest, BytesAreDividedBy255) {
  const absl::StatusOr<ResolvedNormalization> resolved =
      ResolveNormalization({}, Shape({2, 4, 4}), DType::kUInt8);
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(resolved->scale, 1.0 / 255);
  EXPECT_THAT(resolved->mean, ElementsAre(0));
  EXPECT_THAT(resolved->standard_deviation, ElementsAre(1));
}

TEST(NormalizationTest, OneNumberForAllChannelsOrOneEach) {
  v1::Normalization normalization;
  normalization.set_scale(1);
  normalization.add_mean(10);
  normalization.add_standard_deviation(2);
  normalization.add_standard_deviation(4);
  const absl::StatusOr<ResolvedNormalization> resolved =
      ResolveNormalization(normalization, Shape({2, 4, 4}), DType::kUInt8);
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(resolved->scale, 1);
  EXPECT_THAT(resolved->mean, ElementsAre(10));
  EXPECT_THAT(resolved->standard_deviation, ElementsAre(2, 4));
}

TEST(NormalizationTest, FeaturesOfSequencesAreChannels) {
  v1::Normalization normalization;
  for (const double mean : {1, 2, 3}) normalization.add_mean(mean);
  EXPECT_TRUE(ResolveNormalization(normalization, Shape({5, 3}), DType::kFloat32).ok());
  EXPECT_FALSE(ResolveNormalization(normalization, Shape({3, 5}), DType::kFloat32).ok());
}

TEST(NormalizationTest, NamesTheFieldsAtFault) {
  v1::Normalization normalization;
  normalization.add_mean(1);
  normalization.add_mean(1);
  normalization.add_standard_deviation(0);
  const std::vector<FieldViolation> violations =
      GetFieldViolations(ResolveNormalization(normalization, Shape({3, 4, 4}), DType::kUInt8).status());
  ASSERT_EQ(violations.size(), 2);
  EXPECT_EQ(violations[0].field, "mean");
  EXPECT_EQ(violations[1].field, "standard_deviation[0]");
}

TEST(NormalizationTest, FloatsStayAsTheyAre) {
  const absl::StatusOr<ResolvedNormalization> resolved =
      ResolveNormalization({}, Shape({5}), DType::kFloat32);
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(resolved->scale, 1);
}

TEST(NormalizationTest, NumbersFromTheDataHaveStandInsAndAreNotGivenToo) {
  v1::Normalization normalization;
  normalization.set_from_data(true);
  const absl::StatusOr<ResolvedNormalization> resolved =
      ResolveNormalization(normalization, Shape({3}), DType::kFloat32);
  ASSERT_TRUE(resolved.ok());
  EXPECT_THAT(resolved->mean, ElementsAre(0, 0, 0));
  EXPECT_THAT(resolved->standard_deviation, ElementsAre(1, 1, 1));
  normalization.add_mean(1);
  const std::vector<FieldViolation> violations =
      GetFieldViolations(ResolveNormalization(normalization, Shape({3}), DType::kFloat32).status());
  ASSERT_EQ(violations.size(), 1);
  EXPECT_EQ(violations[0].field, "mean");
}

}  // namespace
}  // namespace tandem
