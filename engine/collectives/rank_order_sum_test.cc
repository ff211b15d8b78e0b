#include "engine/collectives/rank_order_sum.h"

#include <cstdint>
#include <vector>

#include "engine/tensor/half.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Checks the sum of `ranks` vectors, written over the second vector and to another vector.
template <typename T>
void CheckSumOf(int ranks, double factor) {
  for (const int64_t elements : {1, 7, 8, 1024, 1025, 5000}) {
    std::vector<std::vector<T>> terms(ranks);
    std::vector<T> other(elements);
    std::vector<float> expected(elements);
    std::vector<const void*> from;
    for (int rank = 0; rank < ranks; ++rank) {
      for (int64_t i = 0; i < elements; ++i) {
        const float term = static_cast<float>((i + rank * 3) % 8);
        terms[rank].push_back(static_cast<T>(term));
        expected[i] += term * static_cast<float>(factor);
      }
      from.push_back(terms[rank].data());
    }
    SumInRankOrder(DTypeOf<T>::value, from, elements, factor, {terms[1].data(), other.data()});
    for (int64_t i = 0; i < elements; ++i) {
      ASSERT_EQ(static_cast<float>(terms[1][i]), expected[i]) << i << " of " << elements;
      ASSERT_EQ(static_cast<float>(other[i]), expected[i]) << i << " of " << elements;
    }
  }
}

template <typename T>
void CheckSum(double factor) {
  CheckSumOf<T>(2, factor);
  CheckSumOf<T>(3, factor);
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

TEST(RankOrderSumTest, TwoMayBeSummedWhereTheyAre) {
  std::vector<float> a, b, sum;
  for (int i = 0; i < 1003; ++i) {
    a.push_back(1.0F / static_cast<float>(i + 1));
    b.push_back(static_cast<float>(i) / 7);
    sum.push_back(a[i] + b[i]);
  }
  SumInRankOrder(DType::kFloat32, {a.data(), b.data()}, 1003, 1, {a.data(), b.data()});
  EXPECT_EQ(a, sum);
  EXPECT_EQ(b, sum);
}

}  // namespace
}  // namespace tandem
