#include "engine/data/formats/scale_kernels.h"

#include <cstring>

namespace tandem {
namespace {

// The bodies below are compiled once for each instruction set. The compiler turns their loops into vectors.
#define TANDEM_SCALE_BODY [[gnu::always_inline]] inline

using Float4 = float __attribute__((vector_size(16)));

TANDEM_SCALE_BODY Float4 LoadFour(const float* from) {
  Float4 four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

TANDEM_SCALE_BODY void StoreFour(Float4 four, float* to) { std::memcpy(to, &four, sizeof four); }

TANDEM_SCALE_BODY void AddRowsBody(const uint8_t* from, int64_t stride, int64_t rows, int64_t count,
                                   uint16_t* __restrict words) {
  // Four rows at a time load and store each word once.
  for (; rows >= 4; rows -= 4, from += 4 * stride) {
    const uint8_t* __restrict a = from;
    const uint8_t* __restrict b = from + stride;
    const uint8_t* __restrict c = from + 2 * stride;
    const uint8_t* __restrict d = from + 3 * stride;
    for (int64_t i = 0; i < count; ++i) {
      const auto two = static_cast<uint16_t>(a[i] + b[i]), others = static_cast<uint16_t>(c[i] + d[i]);
      const auto four = static_cast<uint16_t>(two + others);
      words[i] = static_cast<uint16_t>(words[i] + four);
    }
  }
  for (; rows >= 2; rows -= 2, from += 2 * stride) {
    const uint8_t* __restrict a = from;
    const uint8_t* __restrict b = from + stride;
    for (int64_t i = 0; i < count; ++i) {
      const auto two = static_cast<uint16_t>(a[i] + b[i]);
      words[i] = static_cast<uint16_t>(words[i] + two);
    }
  }
  if (rows == 0) return;
  const uint8_t* __restrict row = from;
  for (int64_t i = 0; i < count; ++i) words[i] = static_cast<uint16_t>(words[i] + row[i]);
}

TANDEM_SCALE_BODY void WeightRowsBody(const Taps& taps, const uint8_t* __restrict first,
                                      uint16_t* __restrict middle, const uint8_t* __restrict last,
                                      int64_t count, float* __restrict to) {
  const float first_weight = taps.first_weight, middle_weight = taps.middle_weight;
  const float last_weight = taps.last_weight;
  for (int64_t i = 0; i < count; ++i) {
    const float sum =
        middle_weight * static_cast<float>(middle[i]) + first_weight * static_cast<float>(first[i]);
    to[i] = sum + last_weight * static_cast<float>(last[i]);
    middle[i] = 0;
  }
}

TANDEM_SCALE_BODY void ScaleGreyBody(const float* line, const Taps* taps, int64_t count, float* to) {
  for (int64_t x = 0; x < count; ++x) {
    const Taps& one = taps[x];
    const float* const from = line + one.first;
    const int64_t last = one.count - 1;
    float middle = 0;
    for (int64_t k = 1; k < last; ++k) middle += from[k];
    const float sum = one.first_weight * from[0] + one.middle_weight * middle;
    to[x] = sum + one.last_weight * from[last];
  }
}

// Returns the colours of a new pixel, and a number without meaning.
TANDEM_SCALE_BODY Float4 ColoursOf(const float* line, const Taps& taps) {
  const float* const from = line + 3 * taps.first;
  const int64_t last = taps.count - 1;
  Float4 middle = {};
  for (int64_t k = 1; k < last; ++k) middle += LoadFour(from + 3 * k);
  const Float4 sum = taps.first_weight * LoadFour(from) + taps.middle_weight * middle;
  return sum + taps.last_weight * LoadFour(from + 3 * last);
}

TANDEM_SCALE_BODY void ScaleColoursBody(const float* line, const Taps* taps, int64_t count, float* to) {
  for (int64_t x = 0; x < count; x += 4) {
    const Float4 a = ColoursOf(line, taps[x]), b = ColoursOf(line, taps[x + 1]);
    const Float4 c = ColoursOf(line, taps[x + 2]), d = ColoursOf(line, taps[x + 3]);
    // Four pixels become four numbers of each colour.
    const Float4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Float4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Float4 blue_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Float4 blue_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    StoreFour(__builtin_shufflevector(ab, cd, 0, 1, 4, 5), to + x);
    StoreFour(__builtin_shufflevector(ab, cd, 2, 3, 6, 7), to + count + x);
    StoreFour(__builtin_shufflevector(blue_ab, blue_cd, 0, 1, 4, 5), to + 2 * count + x);
  }
}

TANDEM_SCALE_BODY void ToBytesBody(const float* __restrict from, int64_t count, uint8_t* __restrict to) {
  for (int64_t i = 0; i < count; ++i) {
    const float high = from[i] < 255.0F ? from[i] : 255.0F;
    const float number = high > 0.0F ? high : 0.0F;
    to[i] = static_cast<uint8_t>(static_cast<int32_t>(number + 0.5F));
  }
}

#undef TANDEM_SCALE_BODY

// Generates the kernels for an instruction set, `TARGET`.
#define TANDEM_SCALE_KERNELS(NAME, TARGET)                                                                   \
  TARGET void AddRows##NAME(const uint8_t* from, int64_t stride, int64_t rows, int64_t count,                \
                            uint16_t* words) {                                                               \
    AddRowsBody(from, stride, rows, count, words);                                                           \
  }                                                                                                          \
  TARGET void WeightRows##NAME(const Taps& taps, const uint8_t* first, uint16_t* middle,                     \
                               const uint8_t* last, int64_t count, float* to) {                              \
    WeightRowsBody(taps, first, middle, last, count, to);                                                    \
  }                                                                                                          \
  TARGET void ScaleGrey##NAME(const float* line, const Taps* taps, int64_t count, float* to) {               \
    ScaleGreyBody(line, taps, count, to);                                                                    \
  }                                                                                                          \
  TARGET void ScaleColours##NAME(const float* line, const Taps* taps, int64_t count, float* to) {            \
    ScaleColoursBody(line, taps, count, to);                                                                 \
  }                                                                                                          \
  TARGET void ToBytes##NAME(const float* from, int64_t count, uint8_t* to) { ToBytesBody(from, count, to); } \
  constexpr ScaleKernels k##NAME = {AddRows##NAME, WeightRows##NAME, ScaleGrey##NAME, ScaleColours##NAME,    \
                                    ToBytes##NAME}

TANDEM_SCALE_KERNELS(Baseline, );
TANDEM_SCALE_KERNELS(Avx2, [[gnu::target("avx2")]]);

#undef TANDEM_SCALE_KERNELS

}  // namespace

const std::vector<const ScaleKernels*>& AllScaleKernels() {
  static const auto* const all = [] {
    auto* found = new std::vector<const ScaleKernels*>;
    if (__builtin_cpu_supports("avx2") != 0) found->push_back(&kAvx2);
    found->push_back(&kBaseline);
    return found;
  }();
  return *all;
}

}  // namespace tandem
