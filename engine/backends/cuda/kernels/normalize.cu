#include "engine/backends/cuda/kernels/normalize.h"

#include <cstdint>
#include <type_traits>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

__device__ __forceinline__ float NumberOf(uint8_t x) { return static_cast<float>(x); }
template <typename X>
__device__ __forceinline__ float NumberOf(X x) {
  return ToFloat(x);
}

// Factor and offset of each channel, for elements of type X.
template <typename X>
auto PairsOf(const Normalization& how) {
  if constexpr (std::is_same_v<X, uint8_t>) {
    return how.byte_pairs;
  } else {
    return how.pairs;
  }
}

template <typename Number>
__device__ __forceinline__ float Normalized(const Number* pair, float x) {
  return static_cast<float>(pair[0] * static_cast<Number>(x) + pair[1]);
}

// Normalises elements in order, `kPack` for each thread.
template <typename X, typename Y, int kPack>
void InOrder(const Normalization& how, const X* x, Y* y, Stream stream) {
  const int64_t channels = how.sizes.channels;
  const int64_t inner = how.x_channels_last ? 1 : how.sizes.inner;
  const bool by_channel = how.by_channel;
  const auto* pairs = PairsOf<X>(how);
  ForEach(how.sizes.elements() / kPack, stream, [=] __device__(int64_t i) {
    const auto items = reinterpret_cast<const Pack<X, kPack>*>(x)[i];
    Pack<Y, kPack> result;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const int64_t channel = by_channel ? (i * kPack + k) / inner % channels : 0;
      result.items[k] = To<Y>(Normalized(pairs + 2 * channel, NumberOf(items.items[k])));
    }
    Store(result, reinterpret_cast<Pack<Y, kPack>*>(y) + i);
  });
}

// Converts plain to channels last. A thread has all channels of a position.
template <typename X, typename Y>
void ToChannelsLast(const Normalization& how, const X* x, Y* y, Stream stream) {
  const int64_t channels = how.sizes.channels;
  const int64_t inner = how.sizes.inner;
  const int64_t of_channel = how.by_channel ? 2 : 0;
  const auto* pairs = PairsOf<X>(how);
  ForEach(how.sizes.outer * inner, stream, [=] __device__(int64_t i) {
    const int64_t outer = i / inner;
    const X* from = x + outer * channels * inner + (i - outer * inner);
    for (int64_t c = 0; c < channels; ++c) {
      y[i * channels + c] = To<Y>(Normalized(pairs + c * of_channel, NumberOf(from[c * inner])));
    }
  });
}

template <typename X, typename Y>
void Run(const Normalization& how, const void* x_data, void* y_data, Stream stream) {
  const X* x = static_cast<const X*>(x_data);
  Y* y = static_cast<Y*>(y_data);
  if (how.x_channels_last != how.y_channels_last) {
    ToChannelsLast(how, x, y, stream);
  } else if (how.sizes.elements() % 8 == 0) {
    InOrder<X, Y, 8>(how, x, y, stream);
  } else {
    InOrder<X, Y, 1>(how, x, y, stream);
  }
}

}  // namespace

void Normalize(const Normalization& how, DType x_type, const void* x, DType y_type, void* y, Stream stream) {
  WithNumber(y_type, [&](auto to) {
    using Y = decltype(to);
    if (x_type == DType::kUInt8) return Run<uint8_t, Y>(how, x, y, stream);
    WithNumber(x_type, [&](auto from) { Run<decltype(from), Y>(how, x, y, stream); });
  });
}

}  // namespace tandem::cuda
