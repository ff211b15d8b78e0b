#ifndef TANDEM_ENGINE_TENSOR_DTYPE_H_
#define TANDEM_ENGINE_TENSOR_DTYPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tandem {

// The type of a tensor's elements.
enum class DType : uint8_t { kFloat32, kFloat64, kBFloat16, kFloat16, kInt32, kInt64, kUInt8 };

// Returns the bytes of an element.
constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kBFloat16:
    case DType::kFloat16:
      return 2;
    case DType::kUInt8:
      return 1;
  }
  return 0;
}

constexpr bool IsFloatingPoint(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat16;
}

// Returns "float32", "int64" and so on.
absl::string_view ToString(DType dtype);

// The DType of a C++ type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TENSOR_DTYPE_H_
