#include "engine/tensor/tensor.h"

#include <cmath>
#include <new>
#include <type_traits>

namespace tandem {
namespace {

constexpr std::align_val_t kAlignment{64};

template <typename F>
void DispatchOnType(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUInt8:
      return f(uint8_t{});
    case DType::kBFloat16:
    case DType::kFloat16:
      assert(false && "no C++ type");
  }
}

}  // namespace

void Tensor::Free::operator()(std::byte* data) const { ::operator delete[](data, kAlignment); }

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      data_(static_cast<std::byte*>(::operator new[](static_cast<size_t>(bytes()), kAlignment))) {
  std::memset(data_.get(), 0, bytes());
}

Tensor::Tensor(const Tensor& other) : Tensor(other.dtype_, other.shape_) {
  std::memcpy(raw_data(), other.raw_data(), bytes());
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

Tensor Tensor::CastTo(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor result(dtype, shape_);
  DispatchOnType(dtype_, [&](auto from) {
    using From = decltype(from);
    DispatchOnType(dtype, [&](auto to) {
      using To = decltype(to);
      const absl::Span<const From> source = data<From>();
      const absl::Span<To> target = result.data<To>();
      for (size_t i = 0; i < source.size(); ++i) {
        if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
          target[i] = static_cast<To>(std::nearbyint(source[i]));
        } else {
          target[i] = static_cast<To>(source[i]);
        }
      }
    });
  });
  return result;
}

}  // namespace tandem
