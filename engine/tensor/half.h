#ifndef TANDEM_ENGINE_TENSOR_HALF_H_
#define TANDEM_ENGINE_TENSOR_HALF_H_

#include <cstdint>
#include <cstring>

#include "engine/tensor/dtype.h"

namespace tandem {

// The two 16-bit floating-point types, as in memory. Arithmetic uses float. Conversions to float are exact.
// Conversions from float round to the nearest, ties to even. NaN stays NaN.

// The upper half of a float32: 8 bits of exponent, 7 of fraction.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof(wide));
    if (value != value) {
      bits = static_cast<uint16_t>(wide >> 16 | 0x40);
    } else {
      bits = static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
  }
  explicit operator float() const {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
};

// IEEE 754 binary16: 5 bits of exponent, 10 of fraction. Numbers that are too large become infinite.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof(wide));
    const uint32_t sign = wide >> 16 & 0x8000;
    const uint32_t magnitude = wide & 0x7fffffff;
    if (magnitude > 0x7f800000) {  // NaN.
      bits = static_cast<uint16_t>(sign | 0x7e00);
    } else if (magnitude >= 0x477ff000) {  // From 65520 on: rounds to infinity.
      bits = static_cast<uint16_t>(sign | 0x7c00);
    } else if (magnitude >= 0x38800000) {  // Normal numbers, from 2^-14 on.
      bits = static_cast<uint16_t>(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
    } else {
      // Adding 1/2 moves the last bit of a subnormal number to the float's last bit and rounds.
      float scaled;
      std::memcpy(&scaled, &magnitude, sizeof(scaled));
      scaled += 0.5F;
      uint32_t sum;
      std::memcpy(&sum, &scaled, sizeof(sum));
      bits = static_cast<uint16_t>(sign | (sum - 0x3f000000));
    }
  }
  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t magnitude = bits & 0x7fff;
    uint32_t wide;
    if (magnitude >= 0x7c00) {  // Infinite, or NaN.
      wide = 0x7f800000 | magnitude << 13;
    } else if (magnitude >= 0x400) {
      wide = (magnitude << 13) + 0x38000000;
    } else {
      // A subnormal number: a multiple of 2^-24.
      const float small = static_cast<float>(magnitude) * 0x1p-24F;
      std::memcpy(&wide, &small, sizeof(wide));
    }
    wide |= sign;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
};

template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::kFloat16;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TENSOR_HALF_H_
