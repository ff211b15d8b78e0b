#include "engine/data/augment/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
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

using Colour = std::array<double, 3>;

ImageShape ShapeOf(int64_t height, int64_t width) {
  return {.channels = 3, .height = height, .width = width};
}

std::unique_ptr<const Transform<uint8_t>> AnyHue(const ImageShape& shape) {
  return MakeHue(FromText<v1::RandomHue>("strength: 0.5"), shape);
}

template <typename T>
std::unique_ptr<const Transform<T>> AnySaturation(const ImageShape& shape) {
  return MakeSaturation<T>(FromText<v1::RandomFactor>("strength: 1"), shape);
}

// Applies the transform with this number.
template <typename T>
std::vector<T> Applied(const Transform<T>& transform, double number, std::vector<T> image) {
  std::vector<T> scratch(image.size());
  transform.Apply(&number, image.data(), scratch.data());
  return image;
}

// A picture of a single row with these colours: all reds, all greens, all blues.
std::vector<uint8_t> Row(const std::vector<std::array<uint8_t, 3>>& colours) {
  std::vector<uint8_t> image;
  for (int c = 0; c < 3; ++c) {
    for (const std::array<uint8_t, 3>& colour : colours) image.push_back(colour[c]);
  }
  return image;
}

// Every colour with multiples of 15.
std::vector<uint8_t> Lattice() {
  std::vector<std::array<uint8_t, 3>> colours;
  for (int r = 0; r <= 255; r += 15) {
    for (int g = 0; g <= 255; g += 15) {
      for (int b = 0; b <= 255; b += 15) {
        colours.push_back({static_cast<uint8_t>(r), static_cast<uint8_t>(g), static_cast<uint8_t>(b)});
      }
    }
  }
  return Row(colours);
}

// RGB to HSV and back, as in textbooks, with all numbers in [0, 1].
Colour ToHsv(const Colour& rgb) {
  const auto [r, g, b] = rgb;
  const double value = std::max({r, g, b}), chroma = value - std::min({r, g, b});
  if (chroma == 0) return {0, 0, value};
  double sixths = 0;
  if (value == r) {
    sixths = std::fmod((g - b) / chroma + 6, 6);
  } else if (value == g) {
    sixths = (b - r) / chroma + 2;
  } else {
    sixths = (r - g) / chroma + 4;
  }
  return {sixths / 6, chroma / value, value};
}

Colour ToRgb(const Colour& hsv) {
  const auto [h, s, v] = hsv;
  const int sector = static_cast<int>(std::floor(h * 6));
  const double f = h * 6 - sector;
  const double p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
  switch (sector % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

TEST(HueTest, TurnsTheColourCircle) {
  const ImageShape shape = ShapeOf(1, 3);
  const auto hue = AnyHue(shape);
  const std::vector<uint8_t> image = Row({{255, 0, 0}, {200, 100, 50}, {90, 90, 90}});
  EXPECT_EQ(Applied(*hue, 1.0 / 3, image), Row({{0, 255, 0}, {50, 200, 100}, {90, 90, 90}}));
  EXPECT_EQ(Applied(*hue, -1.0 / 3, image), Row({{0, 0, 255}, {100, 50, 200}, {90, 90, 90}}));
  EXPECT_EQ(Applied(*hue, 0.5, image), Row({{0, 255, 255}, {50, 150, 200}, {90, 90, 90}}));
  EXPECT_EQ(Applied(*hue, -0.5, image), Row({{0, 255, 255}, {50, 150, 200}, {90, 90, 90}}));
  EXPECT_EQ(Applied(*hue, 1.0 / 6, image), Row({{255, 255, 0}, {150, 200, 50}, {90, 90, 90}}));
  EXPECT_EQ(Applied(*hue, 0.06, image), Row({{255, 92, 0}, {200, 154, 50}, {90, 90, 90}}));
}

TEST(HueTest, AgreesWithPlainConversions) {
  const std::vector<uint8_t> image = Lattice();
  const int64_t pixels = static_cast<int64_t>(image.size()) / 3;
  const auto hue = AnyHue(ShapeOf(1, pixels));
  for (const double shift : {-0.5, -0.43, -0.25, -1.0 / 12, -0.001, 0.0, 0.02, 1.0 / 7, 0.3, 0.499, 0.5}) {
    const std::vector<uint8_t> changed = Applied(*hue, shift, image);
    for (int64_t i = 0; i < pixels; ++i) {
      Colour hsv = ToHsv({image[i] / 255.0, image[pixels + i] / 255.0, image[2 * pixels + i] / 255.0});
      hsv[0] += shift - std::floor(hsv[0] + shift);
      const Colour expected = ToRgb(hsv);
      for (int c = 0; c < 3; ++c) {
        ASSERT_TRUE(std::abs(changed[c * pixels + i] - 255 * expected[c]) <= 0.5 + 1e-3)
            << shift << " " << i << " " << 255 * expected[c];
      }
    }
  }
}

TEST(HueTest, NoShiftIsNoChangeOfAnyColour) {
  const auto hue = AnyHue(ShapeOf(256, 256));
  std::vector<uint8_t> image(3 * 65536);
  for (int i = 0; i < 65536; ++i) {
    image[65536 + i] = static_cast<uint8_t>(i / 256);
    image[2 * 65536 + i] = static_cast<uint8_t>(i % 256);
  }
  for (int red = 0; red < 256; ++red) {
    std::fill(image.begin(), image.begin() + 65536, static_cast<uint8_t>(red));
    ASSERT_EQ(Applied(*hue, 0, image), image) << red;
  }
}

TEST(HueTest, KeepsTheLeastAndTheMostOfAPixel) {
  const std::vector<uint8_t> image = Lattice();
  const int64_t pixels = static_cast<int64_t>(image.size()) / 3;
  const auto hue = AnyHue(ShapeOf(1, pixels));
  for (const double shift : {-0.37, 0.111, 0.48}) {
    const std::vector<uint8_t> changed = Applied(*hue, shift, image);
    for (int64_t i = 0; i < pixels; ++i) {
      const auto limits = [&](const std::vector<uint8_t>& of) {
        return std::minmax({of[i], of[pixels + i], of[2 * pixels + i]});
      };
      ASSERT_EQ(limits(changed), limits(image)) << shift << " " << i;
    }
  }
}

// Loops over vectors have ends of any length.
TEST(HueTest, IsTheSameInPicturesOfAnySize) {
  constexpr int kMostPixels = 70;
  // Each pixel has its own colour. Pictures of a single pixel give the expected colours.
  std::vector<std::array<uint8_t, 3>> colours;
  std::vector<std::vector<uint8_t>> shifted_ones, mixed_ones;
  for (int i = 0; i < kMostPixels; ++i) {
    colours.push_back({static_cast<uint8_t>(17 + 3 * i), static_cast<uint8_t>(200 - 2 * i),
                       static_cast<uint8_t>(99 + 41 * i)});
    shifted_ones.push_back(Applied(*AnyHue(ShapeOf(1, 1)), 0.2, Row({colours[i]})));
    mixed_ones.push_back(Applied(*AnySaturation<uint8_t>(ShapeOf(1, 1)), 0.3, Row({colours[i]})));
  }
  for (int pixels = 1; pixels <= kMostPixels; ++pixels) {
    const std::vector<uint8_t> image = Row({colours.begin(), colours.begin() + pixels});
    for (const ImageShape& shape : {ShapeOf(1, pixels), ShapeOf(pixels, 1)}) {
      const std::vector<uint8_t> shifted = Applied(*AnyHue(shape), 0.2, image);
      const std::vector<uint8_t> mixed = Applied(*AnySaturation<uint8_t>(shape), 0.3, image);
      for (int i = 0; i < 3 * pixels; ++i) {
        EXPECT_EQ(shifted[i], shifted_ones[i % pixels][i / pixels]) << pixels << " " << i;
        EXPECT_EQ(mixed[i], mixed_ones[i % pixels][i / pixels]) << pixels << " " << i;
      }
    }
  }
}

TEST(SaturationTest, BlendsWithGrey) {
  const ImageShape shape = ShapeOf(1, 2);
  const auto saturation = AnySaturation<uint8_t>(shape);
  // The greys are 123.65 and 76.245.
  const std::vector<uint8_t> image = Row({{100, 150, 50}, {255, 0, 0}});
  EXPECT_EQ(Applied(*saturation, 0, image), Row({{124, 124, 124}, {76, 76, 76}}));
  EXPECT_EQ(Applied(*saturation, 0.5, image), Row({{112, 137, 87}, {166, 38, 38}}));
  EXPECT_EQ(Applied(*saturation, 1, image), image);
  EXPECT_EQ(Applied(*saturation, 1.5, image), Row({{88, 163, 13}, {255, 0, 0}}));
  EXPECT_EQ(Applied(*saturation, 2, image), Row({{76, 176, 0}, {255, 0, 0}}));
}

TEST(SaturationTest, AgreesWithThePlainFormula) {
  const std::vector<uint8_t> image = Lattice();
  const int64_t pixels = static_cast<int64_t>(image.size()) / 3;
  const auto bytes = AnySaturation<uint8_t>(ShapeOf(1, pixels));
  const auto floats = AnySaturation<float>(ShapeOf(1, pixels));
  const std::vector<float> numbers(image.begin(), image.end());
  for (const double factor : {0.0, 0.17, 0.5, 0.999, 1.0, 1.31, 2.0}) {
    const std::vector<uint8_t> changed = Applied(*bytes, factor, image);
    const std::vector<float> unlimited = Applied(*floats, factor, numbers);
    for (int64_t i = 0; i < pixels; ++i) {
      const double grey = 0.299 * image[i] + 0.587 * image[pixels + i] + 0.114 * image[2 * pixels + i];
      for (int64_t k = i; k < 3 * pixels; k += pixels) {
        const double expected = grey + factor * (image[k] - grey);
        ASSERT_TRUE(std::abs(changed[k] - std::clamp(expected, 0.0, 255.0)) <= 0.5 + 1e-3)
            << factor << " " << k;
        ASSERT_TRUE(std::abs(unlimited[k] - expected) <= 1e-3) << factor << " " << k;
      }
    }
  }
}

TEST(SaturationTest, GreyStaysGrey) {
  std::vector<uint8_t> greys(3 * 256);
  for (int i = 0; i < 3 * 256; ++i) greys[i] = static_cast<uint8_t>(i % 256);
  const auto saturation = AnySaturation<uint8_t>(ShapeOf(16, 16));
  for (const double factor : {0.0, 0.3, 1.0, 1.7, 2.0}) EXPECT_EQ(Applied(*saturation, factor, greys), greys);
}

// Expects numbers of a uniform distribution over [least, most].
template <typename T>
void ExpectUniform(const Transform<T>& transform, double least, double most) {
  ASSERT_EQ(transform.numbers(), 1);
  constexpr int kDraws = 20000;
  std::vector<double> drawn(kDraws);
  for (int i = 0; i < kDraws; ++i) {
    RandomStream random(1, RandomPurpose::kAugmentation, 1, i);
    transform.Draw(random, &drawn[i]);
  }
  std::sort(drawn.begin(), drawn.end());
  EXPECT_GE(drawn.front(), least);
  EXPECT_LE(drawn.back(), most);
  // Kolmogorov and Smirnov: a larger distance has a probability of 1e-6.
  double distance = 0;
  for (int i = 0; i < kDraws; ++i) {
    distance = std::max(distance, std::abs((drawn[i] - least) / (most - least) - (i + 0.5) / kDraws));
  }
  EXPECT_TRUE(distance <= 2.7 / std::sqrt(kDraws)) << distance;
}

TEST(ColourTest, DrawsAreUniform) {
  const ImageShape shape = ShapeOf(2, 2);
  ExpectUniform(*MakeHue(FromText<v1::RandomHue>("strength: 0.5"), shape), -0.5, 0.5);
  ExpectUniform(*MakeHue(FromText<v1::RandomHue>("strength: 0.1"), shape), -0.1, 0.1);
  ExpectUniform(*MakeSaturation<uint8_t>(FromText<v1::RandomFactor>("strength: 1"), shape), 0, 2);
  ExpectUniform(*MakeSaturation<float>(FromText<v1::RandomFactor>("strength: 0.25"), shape), 0.75, 1.25);
}

TEST(ColourTest, WrongFieldsAreNamed) {
  const auto hue = [](const std::string& text, const ImageShape& shape = ShapeOf(1, 1),
                      SampleType type = SampleType::kBytes) {
    return std::string(CheckHue(FromText<v1::RandomHue>(text), shape, type).message());
  };
  const auto saturation = [](const std::string& text, const ImageShape& shape = ShapeOf(1, 1)) {
    return std::string(CheckSaturation(FromText<v1::RandomFactor>(text), shape).message());
  };
  EXPECT_EQ(hue("strength: 0.5"), "");
  EXPECT_EQ(hue(""), "strength: is 0; it must be above 0 and at most 0.5");
  EXPECT_EQ(hue("strength: 0.501"), "strength: is 0.501; it must be above 0 and at most 0.5");
  EXPECT_EQ(hue("strength: nan"), "strength: is nan; it must be above 0 and at most 0.5");
  EXPECT_EQ(hue("strength: -0.1"), "strength: is -0.1; it must be above 0 and at most 0.5");
  EXPECT_THAT(hue("strength: 0.1", ShapeOf(1, 1), SampleType::kFloats), HasSubstr("needs samples of bytes"));
  const ImageShape grey = {.channels = 1, .height = 4, .width = 4};
  const ImageShape four = {.channels = 4, .height = 4, .width = 4};
  EXPECT_THAT(hue("strength: 0.1", grey),
              HasSubstr("three channels, red, green and blue, but those of the data "
                        "set have 1"));
  EXPECT_EQ(saturation("strength: 1"), "");
  EXPECT_EQ(saturation("strength: 1.5"), "strength: is 1.5; it must be above 0 and at most 1");
  EXPECT_EQ(saturation("strength: nan"), "strength: is nan; it must be above 0 and at most 1");
  EXPECT_THAT(saturation("strength: 0.1", four), HasSubstr("but those of the data set have 4"));
}

}  // namespace
}  // namespace tandem
