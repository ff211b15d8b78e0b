#include "engine/data/normalization.h"

#include "engine/base/field_violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(NormalizationTest, BytesAreDividedBy255) {
  const absl::StatusOr<ChannelScaling> scaling = ResolveNormalization({}, Shape({2, 4, 4}));
  ASSERT_TRUE(scaling.ok());
  EXPECT_THAT(scaling->scale, ElementsAre(DoubleEq(1.0 / 255), DoubleEq(1.0 / 255)));
  EXPECT_THAT(scaling->offset, ElementsAre(DoubleEq(0), DoubleEq(0)));
}

TEST(NormalizationTest, OneNumberForAllChannelsOrOneEach) {
  v1::Normalization normalization;
  normalization.set_scale(1);
  normalization.add_mean(10);
  normalization.add_standard_deviation(2);
  normalization.add_standard_deviation(4);
  const absl::StatusOr<ChannelScaling> scaling = ResolveNormalization(normalization, Shape({2, 4, 4}));
  ASSERT_TRUE(scaling.ok());
  EXPECT_THAT(scaling->scale, ElementsAre(0.5, 0.25));
  EXPECT_THAT(scaling->offset, ElementsAre(-5, -2.5));
}

TEST(NormalizationTest, NamesTheFieldsAtFault) {
  v1::Normalization normalization;
  normalization.add_mean(1);
  normalization.add_mean(1);
  normalization.add_standard_deviation(0);
  const std::vector<FieldViolation> violations =
      GetFieldViolations(ResolveNormalization(normalization, Shape({3, 4, 4})).status());
  ASSERT_EQ(violations.size(), 2);
  EXPECT_EQ(violations[0].field, "mean");
  EXPECT_EQ(violations[1].field, "standard_deviation[0]");
}

}  // namespace
}  // namespace tandem
