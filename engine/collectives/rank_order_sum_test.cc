#include "engine/collectives/rank_order_sum.h"

#include <cstdint>
#include <vector>

#include "engine/tensor/half.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// The sum of three vectors, written over the second one and to a fourth.
template <typename T>
void CheckSum(double factor) {
  for (const int64_t elements : {1, 7, 1024, 1025, 5000}) {
    std::vector<T> terms[3], other(elements);
    std::vector<float> expected(elements);
    for (int rank = 0; rank < 3; ++rank) {
      for (int64_t i = 0; i < elements; ++i) {
        const float term = static_cast<float>((i + rank * 3) % 8);
        terms[rank].push_back(static_cast<T>(term));
        expected[i] += term * static_cast<float>(factor);
      }
    }
    SumInRankOrder(DTypeOf<T>::value, {terms[0].data(), terms[1].data(), terms[2].data()}, elements, factor,
                   {terms[1].data(), other.data()});
    for (int64_t i = 0; i < elements; ++i) {
      ASSERT_EQ(static_cast<float>(terms[1][i]), expected[i]) << i << " of " << elements;
      ASSERT_EQ(static_cast<float>(other[i]), expected[i]) << i << " of " << elements;
    }
  }
}

TEST(RankOrderSumTest, AddsEveryType) {
  CheckSum<float>(1);
  CheckSum<double>(1);
  CheckSum<BFloat16>(1);
  CheckSum<Float16>(1);
  CheckSum<int32_t>(1);
  CheckSum<int64_t>(1);
  CheckSum<uint8_t>(1);
}

TEST(RankOrderSumTest, MultipliesByTheFactor) {
  CheckSum<float>(0.5);
  CheckSum<double>(0.5);
  CheckSum<BFloat16>(0.5);
  CheckSum<Float16>(0.5);
}

TEST(RankOrderSumTest, AddsInTheOrderOfRanks) {
  const float a = 1, b = 0x1p-24F, c = 0x1p-24F;
  float sum = 0;
  SumInRankOrder(DType::kFloat32, {&a, &b, &c}, 1, 1, {&sum});
  EXPECT_EQ(sum, 1);
  SumInRankOrder(DType::kFloat32, {&b, &c, &a}, 1, 1, {&sum});
  EXPECT_EQ(sum, 1 + 0x1p-23F);
}

TEST(RankOrderSumTest, RoundsShortTypesOnce) {
  const BFloat16 one(1), small(0x1p-8F);
  BFloat16 sum;
  SumInRankOrder(DType::kBFloat16, {&one, &small, &small}, 1, 1, {&sum});
  EXPECT_EQ(static_cast<float>(sum), 1 + 0x1p-7F);
}

}  // namespace
}  // namespace tandem
