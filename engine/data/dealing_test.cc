#include "engine/data/dealing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

TEST(DealingTest, EqualLoads) {
  EXPECT_THAT(DealSamples(128, {1, 1}), ElementsAre(64, 64));
  EXPECT_THAT(DealSamples(128, {1, 1, 1}), ElementsAre(43, 43, 42));
  EXPECT_THAT(DealSamples(96, {1, 1, 1}), ElementsAre(32, 32, 32));
  EXPECT_THAT(DealSamples(1, {1, 1}), ElementsAre(1, 0));
  EXPECT_THAT(DealSamples(0, {1, 1}), ElementsAre(0, 0));
}

TEST(DealingTest, UnequalLoadsByLargestRemainder) {
  EXPECT_THAT(DealSamples(10, {0.6, 0.3, 0.1}), ElementsAre(6, 3, 1));
  EXPECT_THAT(DealSamples(7, {1, 2}), ElementsAre(2, 5));
  EXPECT_THAT(DealSamples(5, {1, 0, 1}), ElementsAre(3, 0, 2));
}

// Double precision misses the exact quotients by different amounts.
TEST(DealingTest, OfEqualRemaindersTheLowerRankWins) {
  EXPECT_THAT(DealSamples(3, {2, 2, 0.5}), ElementsAre(2, 1, 0));     // 4/3, 4/3 and 1/3.
  EXPECT_THAT(DealSamples(39, {2, 2, 0.5}), ElementsAre(18, 17, 4));  // 52/3, 52/3 and 13/3.
}

// Jobs must not have such loads, but the results must be numbers.
TEST(DealingTest, LoadsAtTheEndsOfWhatNumbersAre) {
  EXPECT_THAT(DealSamples(8, std::vector<double>{1e308}), ElementsAre(8));
  EXPECT_THAT(DealSamples(8, std::vector<double>{8e307, 8e307}), ElementsAre(4, 4));
  EXPECT_THAT(DealSamples(8, std::vector<double>{1e-320}), ElementsAre(8));
  EXPECT_THAT(DealSamples(int64_t{1} << 62, std::vector<double>{1e6}), ElementsAre(int64_t{1} << 62));
}

TEST(DealingTest, CountsAlwaysAddUp) {
  for (int64_t samples = 0; samples < 300; ++samples) {
    int64_t sum = 0;
    for (const int64_t count : DealSamples(samples, {0.1, 0.7, 3.3, 1e-9, 0})) sum += count;
    ASSERT_EQ(sum, samples);
  }
}

}  // namespace
}  // namespace tandem
