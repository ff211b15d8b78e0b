#include "engine/base/philox.h"

#include <set>

#include "gtest/gtest.h"

namespace tandem {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers that the paper's authors publish with their code (Random123, kat_vectors).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStreamTest, EveryPartOfTheKeyMatters) {
  std::set<uint64_t> seen;
  seen.insert(RandomStream(1, RandomPurpose::kShuffle, 2, 3).Next64());
  seen.insert(RandomStream(uint64_t{1} << 32, RandomPurpose::kShuffle, 2, 3).Next64());
  seen.insert(RandomStream(1, RandomPurpose::kInitializer, 2, 3).Next64());
  seen.insert(RandomStream(1, RandomPurpose::kShuffle, 3, 2).Next64());
  seen.insert(RandomStream(1, RandomPurpose::kShuffle, uint64_t{1} << 39, 3).Next64());
  seen.insert(RandomStream(1, RandomPurpose::kShuffle, 2, uint64_t{1} << 39).Next64());
  EXPECT_EQ(seen.size(), 6);
  EXPECT_EQ(RandomStream(1, RandomPurpose::kShuffle, 2, 3).Next64(),
            RandomStream(1, RandomPurpose::kShuffle, 2, 3).Next64());
}

TEST(RandomStreamTest, MomentsOfUniformAndNormal) {
  RandomStream random(7, RandomPurpose::kInitializer, 0, 0);
  constexpr int kCount = 200000;
  double uniform = 0, normal = 0, square = 0;
  for (int i = 0; i < kCount; ++i) {
    const double u = random.NextUniform();
    ASSERT_TRUE(u >= 0 && u < 1) << u;
    uniform += u;
    const double n = random.NextNormal();
    normal += n;
    square += n * n;
  }
  EXPECT_NEAR(uniform / kCount, 0.5, 0.005);
  EXPECT_NEAR(normal / kCount, 0, 0.01);
  EXPECT_NEAR(square / kCount, 1, 0.02);
}

TEST(RandomStreamTest, BelowReachesEveryNumberAndNoOther) {
  RandomStream random(7, RandomPurpose::kShuffle, 0, 0);
  std::array<int, 7> counts = {};
  for (int i = 0; i < 7000; ++i) {
    const uint32_t value = random.NextBelow(7);
    ASSERT_LT(value, 7);
    ++counts[value];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.NextBelow(1), 0);
}

}  // namespace
}  // namespace tandem
