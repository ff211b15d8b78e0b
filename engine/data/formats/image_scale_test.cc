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

// An image and its scaling.
struct Scaling {
  ScaledSide down;
  ScaledSide across;
  int64_t channels = 1;
  std::vector<uint8_t> pixels;  // [down.size, across.size, channels]

  testing::Message Shown() const {
    return testing::Message() << down.size << "x" << across.size << "x" << channels << " to " << down.scaled
                              << "x" << across.scaled << " from " << down.first << "," << across.first << ", "
                              << down.count << "x" << across.count;
  }
};

Scaling RandomPixels(const ScaledSide& down, const ScaledSide& across, int64_t channels,
                     std::mt19937& random) {
  Scaling scaling = {.down = down, .across = across, .channels = channels, .pixels = {}};
  scaling.pixels.resize(down.size * across.size * channels);
  for (uint8_t& pixel : scaling.pixels) pixel = static_cast<uint8_t>(random());
  return scaling;
}

ScaledSide RandomSide(std::mt19937& random, int64_t most) {
  ScaledSide side = {.size = 1 + static_cast<int64_t>(random() % most),
                     .scaled = 1 + static_cast<int64_t>(random() % most)};
  side.count = 1 + static_cast<int64_t>(random() % side.scaled);
  side.first = static_cast<int64_t>(random() % (side.scaled - side.count + 1));
  return side;
}

// Scales by `scaler`, with up to `piece` rows at a time. Returns [channels, down.count, across.count].
std::vector<uint8_t> Scale(const Scaling& scaling, int64_t piece, RowScaler& scaler) {
  const int64_t area = scaling.down.count * scaling.across.count;
  std::vector<uint8_t> scaled(area * scaling.channels, 111);
  scaler.Begin(scaling.channels, scaling.down, scaling.across,
               {.pixels = scaled.data(), .plane_stride = area, .row_stride = scaling.across.count});
  const int64_t stride = scaling.across.size * scaling.channels;
  for (int64_t y = 0; y < scaling.down.size; y += piece) {
    // In memory of their own, so that no row is read after its call.
    const int64_t count = std::min(piece, scaling.down.size - y);
    const std::vector<uint8_t> rows(scaling.pixels.begin() + y * stride,
                                    scaling.pixels.begin() + (y + count) * stride);
    scaler.Add(rows.data() + scaler.first_column() * scaling.channels, count, stride);
  }
  return scaled;
}

// Weights old numbers that are `stride` apart, in the order of ScaleKernels.
template <typename Number>
float Weighted(const Taps& taps, const Number* numbers, int64_t stride) {
  const Number* const from = numbers + taps.first * stride;
  const int64_t last = taps.count - 1;
  float middle = 0;
  for (int64_t k = 1; k < last; ++k) middle += static_cast<float>(from[k * stride]);
  // Volatile, so that each operation rounds.
  const volatile float first_part = taps.first_weight * static_cast<float>(from[0]);
  const volatile float middle_part = taps.middle_weight * middle;
  const volatile float last_part = last == 0 ? 0 : taps.last_weight * static_cast<float>(from[last * stride]);
  return middle_part + first_part + last_part;
}

// Scales a whole image without any cleverness, by the same floating-point operations as RowScaler.
std::vector<uint8_t> ScalePlainly(const Scaling& scaling) {
  const ScaledSide &down = scaling.down, &across = scaling.across;
  const std::vector<Taps> rows = TapsOf(down), columns = TapsOf(across);
  const int64_t channels = scaling.channels, old_row = across.size * channels;
  std::vector<float> numbers(channels * down.count * across.count);
  const auto at = [&](int64_t c, int64_t y, int64_t x) -> float& {
    return numbers[(c * down.count + y) * across.count + x];
  };
  if (down.count <= down.size) {
    for (int64_t y = 0; y < down.count; ++y) {
      std::vector<float> line(old_row);
      for (int64_t i = 0; i < old_row; ++i) line[i] = Weighted(rows[y], scaling.pixels.data() + i, old_row);
      for (int64_t x = 0; x < across.count; ++x) {
        for (int64_t c = 0; c < channels; ++c) at(c, y, x) = Weighted(columns[x], line.data() + c, channels);
      }
    }
  } else {
    for (int64_t x = 0; x < across.count; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        std::vector<float> column(down.size);
        for (int64_t y = 0; y < down.size; ++y) {
          column[y] = Weighted(columns[x], scaling.pixels.data() + y * old_row + c, channels);
        }
        for (int64_t y = 0; y < down.count; ++y) at(c, y, x) = Weighted(rows[y], column.data(), 1);
      }
    }
  }
  std::vector<uint8_t> scaled;
  for (const float number : numbers) {
    scaled.push_back(static_cast<uint8_t>(std::clamp(number, 0.0F, 255.0F) + 0.5F));
  }
  return scaled;
}

void CheckDefinition(const Scaling& scaling) {
  SCOPED_TRACE(scaling.Shown());
  const ScaledSide &down = scaling.down, &across = scaling.across;
  RowScaler scaler;
  const std::vector<uint8_t> scaled = Scale(scaling, down.size, scaler);
  for (int64_t c = 0; c < scaling.channels; ++c) {
    for (int64_t y = 0; y < down.count; ++y) {
      for (int64_t x = 0; x < across.count; ++x) {
        double sum = 0;
        for (int64_t old_y = 0; old_y < down.size; ++old_y) {
          const double weight = WeightOf(down, y, old_y);
          for (int64_t old_x = 0; weight > 0 && old_x < across.size; ++old_x) {
            sum += weight * WeightOf(across, x, old_x) *
                   scaling.pixels[(old_y * across.size + old_x) * scaling.channels + c];
          }
        }
        // Half for the rounding, and the error of sums in single precision.
        ASSERT_NEAR(scaled[(c * down.count + y) * across.count + x], sum, 0.51) << c << "," << y << "," << x;
      }
    }
  }
}

TEST(ImageScaleTest, FollowsTheDefinition) {
  std::mt19937 random(37);
  for (int i = 0; i < 100; ++i) {
    const ScaledSide down = RandomSide(random, 40), across = RandomSide(random, 40);
    for (const int64_t channels : {1, 3}) CheckDefinition(RandomPixels(down, across, channels, random));
  }
}

// The sums of more rows than a word has room for.
TEST(ImageScaleTest, AddsManyRows) {
  std::mt19937 random(38);
  for (const int64_t rows : {257, 258, 259, 260, 516, 517, 2000}) {
    const ScaledSide down = {.size = rows, .scaled = 1, .first = 0, .count = 1};
    const ScaledSide across = {.size = 5, .scaled = 2, .first = 0, .count = 2};
    CheckDefinition(RandomPixels(down, across, 3, random));
  }
  const Scaling white = {.down = {.size = 2000, .scaled = 1, .first = 0, .count = 1},
                         .across = {.size = 1, .scaled = 1, .first = 0, .count = 1},
                         .channels = 1,
                         .pixels = std::vector<uint8_t>(2000, 255)};
  RowScaler scaler;
  EXPECT_EQ(Scale(white, 2000, scaler), std::vector<uint8_t>{255});
}

// The rows' pieces, the instruction set and the images before do not matter.
TEST(ImageScaleTest, AllPiecesAndKernelsGiveTheSameBits) {
  std::mt19937 random(39);
  for (const ScaleKernels* kernels : AllScaleKernels()) {
    RowScaler scaler(*kernels);
    for (int i = 0; i < 120; ++i) {
      ScaledSide down = RandomSide(random, i % 4 == 0 ? 700 : 40), across = RandomSide(random, 40);
      if (i % 10 == 0) down.scaled = 1 + down.scaled % 3;
      if (i % 10 == 1) down.scaled = down.size, across.scaled = across.size;
      for (ScaledSide* side : {&down, &across}) {
        side->count = std::min({side->count, side->scaled, int64_t{12}});
        side->first = std::min(side->first, side->scaled - side->count);
      }
      const Scaling scaling = RandomPixels(down, across, i % 3 == 0 ? 1 : 3, random);
      SCOPED_TRACE(scaling.Shown());
      const std::vector<uint8_t> expected = ScalePlainly(scaling);
      for (const int64_t piece : {int64_t{1}, int64_t{7}, int64_t{8}, down.size}) {
        ASSERT_EQ(Scale(scaling, piece, scaler), expected) << "in pieces of " << piece << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace tandem
