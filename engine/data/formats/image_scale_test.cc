#include "engine/data/formats/image_scale.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tandem {
namespace {

// Returns the weight of pixel `old` in the new pixel `i`, by the definition.
double WeightOf(const ScaledSide& side, int64_t i, int64_t old) {
  const double ratio = static_cast<double>(side.size) / static_cast<double>(side.scaled);
  const auto place = static_cast<double>(old);
  if (side.scaled < side.size) {
    const double begin = static_cast<double>(side.first + i) * ratio;
    return std::max(0.0, std::min(begin + ratio, place + 1) - std::max(begin, place)) / ratio;
  }
  const double at = std::clamp((static_cast<double>(side.first + i) + 0.5) * ratio - 0.5, 0.0,
                               static_cast<double>(side.size - 1));
  return std::max(0.0, 1 - std::abs(at - place));
}

void CheckScaling(const ScaledSide& down, const ScaledSide& across, int64_t channels, std::mt19937& random) {
  SCOPED_TRACE(testing::Message() << down.size << "x" << across.size << "x" << channels << " to "
                                  << down.scaled << "x" << across.scaled << " from " << down.first << ","
                                  << across.first);
  std::vector<uint8_t> pixels(down.size * across.size * channels);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random());
  std::vector<uint8_t> scaled(down.count * across.count * channels);
  ScalePixels(pixels.data(), channels, down, across, scaled.data());
  for (int64_t y = 0; y < down.count; ++y) {
    for (int64_t x = 0; x < across.count; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t old_y = 0; old_y < down.size; ++old_y) {
          const double weight = WeightOf(down, y, old_y);
          for (int64_t old_x = 0; weight > 0 && old_x < across.size; ++old_x) {
            sum += weight * WeightOf(across, x, old_x) * pixels[(old_y * across.size + old_x) * channels + c];
          }
        }
        // Half for the rounding, and the error of sums in single precision.
        ASSERT_NEAR(scaled[(y * across.count + x) * channels + c], sum, 0.51) << y << "," << x << "," << c;
      }
    }
  }
}

TEST(ImageScaleTest, FollowsTheDefinition) {
  std::mt19937 random(37);
  const auto draw_side = [&random] {
    ScaledSide side = {.size = 1 + static_cast<int64_t>(random() % 40),
                       .scaled = 1 + static_cast<int64_t>(random() % 40)};
    side.count = 1 + static_cast<int64_t>(random() % side.scaled);
    side.first = static_cast<int64_t>(random() % (side.scaled - side.count + 1));
    return side;
  };
  for (int i = 0; i < 100; ++i) {
    const ScaledSide down = draw_side(), across = draw_side();
    for (const int64_t channels : {1, 3}) CheckScaling(down, across, channels, random);
  }
}

// The sums of more rows than a word has room for.
TEST(ImageScaleTest, AddsManyRows) {
  std::mt19937 random(38);
  for (const int64_t rows : {257, 258, 259, 260, 516, 517, 2000}) {
    const ScaledSide down = {.size = rows, .scaled = 1, .first = 0, .count = 1};
    const ScaledSide across = {.size = 5, .scaled = 2, .first = 0, .count = 2};
    CheckScaling(down, across, 3, random);
  }
  const std::vector<uint8_t> white(2000, 255);
  uint8_t mean = 0;
  ScalePixels(white.data(), 1, {.size = 2000, .scaled = 1, .first = 0, .count = 1},
              {.size = 1, .scaled = 1, .first = 0, .count = 1}, &mean);
  EXPECT_EQ(mean, 255);
}

}  // namespace
}  // namespace tandem
