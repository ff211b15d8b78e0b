#include "engine/backends/cuda/kernels/patches.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// Elements that a thread writes at once.
template <typename T>
constexpr int kWide = 16 / sizeof(T);

template <typename T>
void RunPatches(const PatchSizes& sizes, const T* x, T* patches, Stream stream) {
  const int packs = static_cast<int>(sizes.width / kWide<T>);
  const int taps = static_cast<int>(sizes.kernel_h * sizes.kernel_w * sizes.c);
  const int of_row = static_cast<int>(sizes.kernel_w * sizes.c);
  const PatchSizes s = sizes;
  ForEach(sizes.rows() * packs, stream, [=] __device__(int64_t i) {
    const int64_t row = i / packs;
    const int pack = static_cast<int>(i - row * packs);
    const int64_t line = row / s.out_w;
    const int column = static_cast<int>(row - line * s.out_w);
    const int64_t image = line / s.out_h;
    const int first_y = static_cast<int>((line - image * s.out_h) * s.stride_h - s.pad_h);
    const int first_x = static_cast<int>(column * s.stride_w - s.pad_w);
    const int channels = static_cast<int>(s.c);
    Pack<T, kWide<T>> result;
#pragma unroll
    for (int j = 0; j < kWide<T>; ++j) {
      const int tap = pack * kWide<T> + j;
      const int down = tap / of_row;
      const int across = (tap - down * of_row) / channels;
      const int channel = tap - down * of_row - across * channels;
      const int64_t from_y = first_y + down * s.dilation_h;
      const int64_t from_x = first_x + across * s.dilation_w;
      const bool is_inside = tap < taps && from_y >= 0 && from_y < s.h && from_x >= 0 && from_x < s.w;
      result.items[j] =
          is_inside ? x[((image * s.h + from_y) * s.w + from_x) * channels + channel] : To<T>(0);
    }
    Store(result, reinterpret_cast<Pack<T, kWide<T>>*>(patches) + i);
  });
}

template <typename T>
void RunPadRows(int64_t rows, int64_t columns, int64_t width, const T* x, T* y, Stream stream) {
  ForEach(rows * width, stream, [=] __device__(int64_t i) {
    const int64_t row = i / width;
    const int64_t column = i - row * width;
    y[i] = column < columns ? x[row * columns + column] : To<T>(0);
  });
}

}  // namespace

void MakePatches(const PatchSizes& sizes, DType type, const void* x, void* patches, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    RunPatches(sizes, static_cast<const T*>(x), static_cast<T*>(patches), stream);
  });
}

void PadRows(int64_t rows, int64_t columns, int64_t width, DType type, const void* x, void* y,
             Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    RunPadRows(rows, columns, width, static_cast<const T*>(x), static_cast<T*>(y), stream);
  });
}

}  // namespace tandem::cuda
