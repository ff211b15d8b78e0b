#include "engine/data/augment/pixel_loops.h"

#include <cmath>
#include <type_traits>

namespace tandem {
namespace {

float AtLeast(float x, float least) { return x > least ? x : least; }
float AtMost(float x, float most) { return x < most ? x : most; }

// `value` is in [0, 255].
uint8_t ToByte(float value) { return static_cast<uint8_t>(static_cast<int32_t>(value + 0.5F)); }

template <typename T>
void EnlargeRowOf(const T* __restrict line, const Place* __restrict places, int64_t count,
                  float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) {
    const Place& place = places[i];
    to[i] = static_cast<float>(line[place.first]) * (1 - place.part) +
            static_cast<float>(line[place.second]) * place.part;
  }
}

template <typename T>
void SaturateOf(float factor, int64_t count, T* __restrict red, T* __restrict green, T* __restrict blue) {
  const float rest = 1 - factor;
  const auto mixed = [&](float x, float grey) {
    const float number = factor * x + rest * grey;
    if constexpr (std::is_same_v<T, uint8_t>) {
      return ToByte(AtMost(AtLeast(number, 0), 255));
    } else {
      return number;
    }
  };
  for (int64_t i = 0; i < count; ++i) {
    const float r = red[i], g = green[i], b = blue[i];
    const float grey = 0.299F * r + 0.587F * g + 0.114F * b;
    red[i] = mixed(r, grey);
    green[i] = mixed(g, grey);
    blue[i] = mixed(b, grey);
  }
}

}  // namespace

void EnlargeRow(const uint8_t* line, const Place* places, int64_t count, float* to) {
  EnlargeRowOf(line, places, count, to);
}
void EnlargeRow(const float* line, const Place* places, int64_t count, float* to) {
  EnlargeRowOf(line, places, count, to);
}

void BlendRows(const float* __restrict upper, const float* __restrict lower, float part, int64_t count,
               uint8_t* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = ToByte(upper[i] * (1 - part) + lower[i] * part);
}
void BlendRows(const float* __restrict upper, const float* __restrict lower, float part, int64_t count,
               float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = upper[i] * (1 - part) + lower[i] * part;
}

void Saturate(float factor, int64_t count, uint8_t* red, uint8_t* green, uint8_t* blue) {
  SaturateOf(factor, count, red, green, blue);
}
void Saturate(float factor, int64_t count, float* red, float* green, float* blue) {
  SaturateOf(factor, count, red, green, blue);
}

void ShiftHues(float shift, int64_t count, uint8_t* __restrict red, uint8_t* __restrict green,
               uint8_t* __restrict blue) {
  for (int64_t i = 0; i < count; ++i) {
    const float r = red[i], g = green[i], b = blue[i];
    const float most = AtLeast(AtLeast(r, g), b), least = AtMost(AtMost(r, g), b);
    const float chroma = most - least;
    // Grey has no hue; any hue gives the same grey.
    const float divisor = AtLeast(chroma, 1);
    const float from_red = (g - b) / divisor, from_green = 2 + (b - r) / divisor;
    const float from_blue = 4 + (r - g) / divisor;
    float hue = (most == r ? from_red : most == g ? from_green : from_blue) + shift;
    hue = hue < 0 ? hue + 6 : hue;
    hue = hue >= 6 ? hue - 6 : hue;
    const auto number = [&](float share) { return ToByte(least + chroma * AtMost(AtLeast(share, 0), 1)); };
    red[i] = number(std::abs(hue - 3) - 1);
    green[i] = number(2 - std::abs(hue - 2));
    blue[i] = number(2 - std::abs(hue - 4));
  }
}

}  // namespace tandem
