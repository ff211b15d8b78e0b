#include "engine/tensor/half.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace tandem {
namespace {

template <typename T>
float Rounded(float value) {
  return static_cast<float>(T(value));
}

// Checks that every number of the type returns from float unchanged.
template <typename T>
void CheckAllBits() {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    T number;
    number.bits = static_cast<uint16_t>(bits);
    const float value = static_cast<float>(number);
    const T back(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << bits;
    } else {
      EXPECT_EQ(back.bits, bits);
    }
  }
}

TEST(HalfTest, FloatHoldsEveryBFloat16) { CheckAllBits<BFloat16>(); }
TEST(HalfTest, FloatHoldsEveryFloat16) { CheckAllBits<Float16>(); }

TEST(HalfTest, KnowsItsNumbers) {
  EXPECT_EQ(Float16(1.0F).bits, 0x3c00);
  EXPECT_EQ(Float16(-2.0F).bits, 0xc000);
  EXPECT_EQ(Float16(65504.0F).bits, 0x7bff);
  EXPECT_EQ(Float16(0x1p-14F).bits, 0x0400);
  EXPECT_EQ(Float16(0x1p-24F).bits, 0x0001);
  EXPECT_EQ(Float16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(BFloat16(1.0F).bits, 0x3f80);
  EXPECT_EQ(BFloat16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

TEST(HalfTest, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(Rounded<Float16>(1.0F + 0x1p-11F), 1.0F);
  EXPECT_EQ(Rounded<Float16>(1.0F + 0x1.8p-11F), 1.0F + 0x1p-10F);
  EXPECT_EQ(Rounded<Float16>(1.0F + 0x3p-11F), 1.0F + 0x1p-9F);
  EXPECT_EQ(Rounded<Float16>(0x1p-25F), 0.0F);
  EXPECT_EQ(Rounded<Float16>(0x1.8p-25F), 0x1p-24F);
  EXPECT_EQ(Rounded<Float16>(0x3p-25F), 0x1p-23F);
  EXPECT_EQ(Rounded<Float16>(0x1.ffcp-15F + 0x1p-25F), 0x1p-14F);
  EXPECT_EQ(Rounded<Float16>(65519.0F), 65504.0F);
  EXPECT_EQ(Rounded<Float16>(65520.0F), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Rounded<BFloat16>(1.0F + 0x1p-8F), 1.0F);
  EXPECT_EQ(Rounded<BFloat16>(1.0F + 0x3p-8F), 1.0F + 0x1p-6F);
  EXPECT_EQ(Rounded<BFloat16>(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace tandem
