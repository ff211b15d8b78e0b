#include "engine/data/augment/resized_crop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/philox.h"
#include "engine/base/testing/from_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Rectangle = std::array<double, 4>;  // Left, top, width, height.

RandomStream Stream(uint64_t sample) { return RandomStream(1, RandomPurpose::kAugmentation, 1, sample); }

std::unique_ptr<const Transform<uint8_t>> Bytes(const std::string& text, const ImageShape& shape) {
  const auto crop = FromText<v1::RandomResizedCrop>(text);
  EXPECT_EQ(CheckResizedCrop(crop, shape), absl::OkStatus()) << text;
  return MakeResizedCrop<uint8_t>(crop, shape);
}

Rectangle Drawn(const Transform<uint8_t>& transform, uint64_t sample) {
  RandomStream random = Stream(sample);
  Rectangle drawn = {-1, -1, -1, -1};
  transform.Draw(random, drawn.data());
  return drawn;
}

template <typename T>
std::vector<T> Cut(const Rectangle& rectangle, const ImageShape& shape, std::vector<T> image) {
  std::vector<T> scratch(image.size());
  MakeResizedCrop<T>({}, shape)->Apply(rectangle.data(), image.data(), scratch.data());
  return image;
}

// Image i has numbers that follow from i.
template <typename T>
std::vector<T> Noise(const ImageShape& shape, uint64_t i) {
  RandomStream random(2, RandomPurpose::kAugmentation, 0, i);
  std::vector<T> image(shape.elements());
  for (T& number : image) number = static_cast<T>(random.NextBelow(256));
  return image;
}

// Bilinear interpolation as in torch.nn.functional.interpolate(align_corners=False), in double precision.
template <typename T>
double Interpolated(const T* plane, const ImageShape& shape, const Rectangle& r, int64_t row,
                    int64_t column) {
  const double x = std::max(0.0, (static_cast<double>(column) + 0.5) * r[2] / shape.width - 0.5);
  const double y = std::max(0.0, (static_cast<double>(row) + 0.5) * r[3] / shape.height - 0.5);
  double sum = 0;
  // A pixel weighs as much as it is near. Weights of pixels beyond the last are its own.
  for (int64_t dy = 0; dy < 2; ++dy) {
    for (int64_t dx = 0; dx < 2; ++dx) {
      const double weight_x = dx == 0 ? 1 - (x - std::floor(x)) : x - std::floor(x);
      const double weight_y = dy == 0 ? 1 - (y - std::floor(y)) : y - std::floor(y);
      const double at_x = r[0] + std::min(std::floor(x) + static_cast<double>(dx), r[2] - 1);
      const double at_y = r[1] + std::min(std::floor(y) + static_cast<double>(dy), r[3] - 1);
      sum +=
          weight_x * weight_y * plane[static_cast<int64_t>(at_y) * shape.width + static_cast<int64_t>(at_x)];
    }
  }
  return sum;
}

TEST(ResizedCropTest, InterpolatesBetweenCentres) {
  const ImageShape row = {.channels = 1, .height = 1, .width = 4};
  EXPECT_THAT(Cut<uint8_t>({1, 0, 2, 1}, row, {0, 40, 80, 120}), ElementsAre(40, 50, 70, 80));
  EXPECT_THAT(Cut<float>({1, 0, 2, 1}, row, {0, 40, 81, 120}), ElementsAre(40, 50.25, 70.75, 81));
  EXPECT_THAT(Cut<uint8_t>({3, 0, 1, 1}, row, {0, 40, 80, 120}), ElementsAre(120, 120, 120, 120));
  const ImageShape column = {.channels = 2, .height = 2, .width = 1};
  EXPECT_THAT(Cut<uint8_t>({0, 1, 1, 1}, column, {1, 2, 3, 4}), ElementsAre(2, 2, 4, 4));
  // The rectangle has the columns 2 and 3 and the rows 0 and 1.
  const ImageShape square = {.channels = 1, .height = 4, .width = 4};
  EXPECT_THAT(Cut<uint8_t>({2, 0, 2, 2}, square, {9, 9, 0, 160, 9, 9, 80, 240, 9, 9, 9, 9, 9, 9, 9, 9}),
              ElementsAre(0, 40, 120, 160, 20, 60, 140, 180, 60, 100, 180, 220, 80, 120, 200, 240));
}

TEST(ResizedCropTest, AgreesWithAPlainInterpolation) {
  for (const ImageShape& shape : {ImageShape{.channels = 3, .height = 13, .width = 21},
                                  ImageShape{.channels = 1, .height = 1, .width = 37},
                                  ImageShape{.channels = 2, .height = 29, .width = 1},
                                  ImageShape{.channels = 1, .height = 1, .width = 1},
                                  ImageShape{.channels = 3, .height = 64, .width = 50}}) {
    for (uint64_t i = 0; i < 40; ++i) {
      RandomStream random = Stream(i);
      Rectangle r;
      r[2] = 1 + random.NextBelow(static_cast<uint32_t>(shape.width));
      r[3] = 1 + random.NextBelow(static_cast<uint32_t>(shape.height));
      r[0] = random.NextBelow(static_cast<uint32_t>(shape.width - r[2] + 1));
      r[1] = random.NextBelow(static_cast<uint32_t>(shape.height - r[3] + 1));
      const std::vector<uint8_t> bytes = Noise<uint8_t>(shape, i), new_bytes = Cut(r, shape, bytes);
      const std::vector<float> floats = Noise<float>(shape, i), new_floats = Cut(r, shape, floats);
      for (int64_t k = 0; k < shape.elements(); ++k) {
        const int64_t plane = k / (shape.height * shape.width) * shape.height * shape.width;
        const int64_t row = (k - plane) / shape.width, column = (k - plane) % shape.width;
        const double expected = Interpolated(bytes.data() + plane, shape, r, row, column);
        ASSERT_TRUE(std::abs(new_bytes[k] - expected) <= 0.5 + 1e-3) << i << " " << k << " " << expected;
        ASSERT_TRUE(std::abs(new_floats[k] - expected) <= 1e-3) << i << " " << k << " " << expected;
      }
    }
  }
}

// torchvision's get_params, with the draws of Tandem's stream.
Rectangle Expected(RandomStream random, const ImageShape& shape, double min_area, double max_area,
                   double min_ratio, double max_ratio) {
  const double height = static_cast<double>(shape.height), width = static_cast<double>(shape.width);
  for (int i = 0; i < 10; ++i) {
    const double area = height * width * (min_area + (max_area - min_area) * random.NextUniform());
    const double ratio = min_ratio * std::pow(max_ratio / min_ratio, random.NextUniform());
    const double w = std::rint(std::sqrt(area * ratio)), h = std::rint(std::sqrt(area / ratio));
    if (0 < w && w <= width && 0 < h && h <= height) {
      const double left = random.NextBelow(static_cast<uint32_t>(width - w + 1));
      return {left, static_cast<double>(random.NextBelow(static_cast<uint32_t>(height - h + 1))), w, h};
    }
  }
  double w = width, h = height;
  if (width / height < min_ratio) h = std::rint(w / min_ratio);
  if (width / height > max_ratio) w = std::rint(h * max_ratio);
  return {std::floor((width - w) / 2), std::floor((height - h) / 2), w, h};
}

TEST(ResizedCropTest, RectanglesAreThoseOfTorchvision) {
  int central = 0;
  for (const ImageShape& shape : {ImageShape{.channels = 1, .height = 31, .width = 47},
                                  ImageShape{.channels = 1, .height = 9, .width = 80},
                                  ImageShape{.channels = 3, .height = 224, .width = 224},
                                  ImageShape{.channels = 1, .height = 5, .width = 2}}) {
    const auto usual = Bytes("", shape);
    const auto wide = Bytes("min_area: 0.5 max_area: 0.9 min_ratio: 2 max_ratio: 3", shape);
    for (uint64_t i = 0; i < 300; ++i) {
      EXPECT_EQ(Drawn(*usual, i), Expected(Stream(i), shape, 0.08, 1, 3.0 / 4, 4.0 / 3)) << i;
      const Rectangle drawn = Drawn(*wide, i);
      EXPECT_EQ(drawn, Expected(Stream(i), shape, 0.5, 0.9, 2, 3)) << i;
      central += drawn[2] == static_cast<double>(shape.width);
    }
  }
  EXPECT_GT(central, 0);
}

TEST(ResizedCropTest, WhatNeverFitsIsCutAtTheCentre) {
  struct Case {
    int64_t height, width;
    const char* text;
    Rectangle expected;
  };
  for (const Case& one :
       {Case{10, 100, "min_area: 1", {43, 0, 13, 10}}, Case{100, 10, "min_area: 1", {0, 43, 10, 13}},
        Case{8, 8, "min_area: 1 min_ratio: 1.3333", {0, 1, 8, 6}},
        Case{8, 8, "min_area: 1 min_ratio: 0.75 max_ratio: 0.75", {1, 0, 6, 8}},
        Case{30,
             40,
             "min_area: 0.000833334 max_area: 0.000833334 min_ratio: 90 max_ratio: 100",
             {0, 14, 40, 1}},
        Case{1, 1, "min_area: 1 min_ratio: 50 max_ratio: 50", {0, 0, 1, 1}},
        Case{1, 1, "min_area: 1 min_ratio: 0.02 max_ratio: 0.02", {0, 0, 1, 1}}}) {
    const ImageShape shape = {.channels = 1, .height = one.height, .width = one.width};
    const auto crop = Bytes(one.text, shape);
    for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(Drawn(*crop, i), one.expected) << one.text;
  }
}

// Returns chi-squared of `counts` against equally likely bins.
double ChiSquared(const std::vector<int>& counts) {
  double total = 0, sum = 0;
  for (const int count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// In an image this large, rounded sides hardly change areas and ratios. Every rectangle fits.
TEST(ResizedCropTest, AreasRatiosAndPlacesAreUniform) {
  const ImageShape shape = {.channels = 1, .height = 20000, .width = 20000};
  const auto crop = Bytes("min_area: 0.1 max_area: 0.5 min_ratio: 0.6 max_ratio: 1.9", shape);
  constexpr int kBins = 20;
  std::vector<std::vector<int>> counts(4, std::vector<int>(kBins));
  const auto count = [&](int what, double share) {
    ASSERT_TRUE(share >= -1e-3 && share <= 1 + 1e-3) << what << " " << share;
    ++counts[what][std::clamp(static_cast<int>(share * kBins), 0, kBins - 1)];
  };
  for (uint64_t i = 0; i < 20000; ++i) {
    const Rectangle r = Drawn(*crop, i);
    count(0, (r[2] * r[3] / 4e8 - 0.1) / 0.4);
    count(1, (std::log(r[2] / r[3]) - std::log(0.6)) / (std::log(1.9) - std::log(0.6)));
    count(2, r[0] / (20001 - r[2]));
    count(3, r[1] / (20001 - r[3]));
  }
  // 60 has a probability of 4e-6 at 19 degrees of freedom.
  for (int what = 0; what < 4; ++what) EXPECT_TRUE(ChiSquared(counts[what]) <= 60) << what;
}

TEST(ResizedCropTest, EveryPlaceIsEquallyLikely) {
  const ImageShape shape = {.channels = 1, .height = 6, .width = 6};
  const auto crop = Bytes("min_area: 0.4444 max_area: 0.4445 min_ratio: 1 max_ratio: 1", shape);
  std::vector<int> counts(9);
  for (uint64_t i = 0; i < 9000; ++i) {
    const Rectangle r = Drawn(*crop, i);
    ASSERT_EQ(r[2], 4);
    ASSERT_EQ(r[3], 4);
    ++counts[static_cast<int>(3 * r[1] + r[0])];
  }
  EXPECT_TRUE(ChiSquared(counts) <= 45);  // 8 degrees of freedom: 4e-7.
}

TEST(ResizedCropTest, TheWholeImageStaysToTheBit) {
  const std::string whole = "min_area: 1 max_area: 1 min_ratio: 1 max_ratio: 1";
  for (const int64_t side : {1, 2, 7, 224}) {
    const ImageShape shape = {.channels = 3, .height = side, .width = side};
    std::vector<float> image = Noise<float>(shape, 1);
    image[0] = -0.0F;
    image[1] = std::numeric_limits<float>::denorm_min();
    image.back() = std::numeric_limits<float>::max();
    const std::vector<float> before = image;
    const auto crop = MakeResizedCrop<float>(FromText<v1::RandomResizedCrop>(whole), shape);
    for (uint64_t i = 0; i < 10; ++i) {
      RandomStream random = Stream(i);
      Rectangle drawn;
      crop->Draw(random, drawn.data());
      EXPECT_THAT(drawn, ElementsAre(0, 0, side, side));
      std::vector<float> scratch(image.size());
      crop->Apply(drawn.data(), image.data(), scratch.data());
      EXPECT_EQ(std::memcmp(image.data(), before.data(), image.size() * sizeof(float)), 0);
    }
  }
}

TEST(ResizedCropTest, WrongFieldsAreNamed) {
  const auto faults = [](const std::string& text, int64_t side = 4) {
    const ImageShape shape = {.channels = 1, .height = side, .width = side};
    return std::string(CheckResizedCrop(FromText<v1::RandomResizedCrop>(text), shape).message());
  };
  EXPECT_EQ(faults("", 1), "");
  EXPECT_EQ(faults("min_area: 1e-9 max_area: 0.0625 min_ratio: 0.01 max_ratio: 100"), "");
  EXPECT_EQ(faults("min_area: 0"), "min_area: is 0; it must be above 0 and at most 1");
  EXPECT_THAT(faults("min_area: nan"), HasSubstr("min_area: is nan; it must be above 0 and at most 1"));
  EXPECT_EQ(faults("max_area: nan"), "max_area: is nan; it must be from min_area, 0.08, to 1");
  EXPECT_EQ(faults("max_area: 1.01"), "max_area: is 1.01; it must be from min_area, 0.08, to 1");
  EXPECT_EQ(faults("min_area: 0.5 max_area: 0.4"), "max_area: is 0.4; it must be from min_area, 0.5, to 1");
  EXPECT_EQ(faults("min_area: 0.01 max_area: 0.05"),
            "max_area: is 0.05; it must be at least 0.0625, the share of one pixel");
  EXPECT_EQ(faults("min_ratio: 0"), "min_ratio: is 0; it must be from 0.01 to 100");
  EXPECT_THAT(faults("min_ratio: nan"), HasSubstr("min_ratio: is nan"));
  EXPECT_THAT(faults("min_ratio: 2"),
              HasSubstr("max_ratio: is 1.33333; it must be from min_ratio, 2, to 100"));
  EXPECT_THAT(faults("max_ratio: inf"),
              HasSubstr("max_ratio: is inf; it must be from min_ratio, 0.75, to 100"));
}

}  // namespace
}  // namespace tandem
