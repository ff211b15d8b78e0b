#include "engine/backends/cuda/kernels/patches.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// The elements that a thread writes at once.
template <typename T>
constexpr int kWide = 16 / sizeof(T);

template <typename T>
void RunPatches(const PatchSizes& sizes, const T* x, T* patches, Stream stream) {
  const uint32_t packs = static_cast<uint32_t>(sizes.width / kWide<T>);
  const uint32_t channels = static_cast<uint32_t>(sizes.c);
  const uint32_t of_row = static_cast<uint32_t>(sizes.kernel_w) * channels;
  const uint32_t taps = static_cast<uint32_t>(sizes.kernel_h) * of_row;
  const PatchSizes s = sizes;
  ForEach(sizes.rows() * packs, stream, [=] __device__(int64_t i) {
    const uint32_t row = static_cast<uint32_t>(i / packs);
    const uint32_t pack = static_cast<uint32_t>(i - int64_t{row} * packs);
    const uint32_t line = row / static_cast<uint32_t>(s.out_w);
    const int column = static_cast<int>(row - line * static_cast<uint32_t>(s.out_w));
    const uint32_t image = line / static_cast<uint32_t>(s.out_h);
    const int top =
        static_cast<int>(line - image * static_cast<uint32_t>(s.out_h)) * static_cast<int>(s.stride_h) -
        static_cast<int>(s.pad_h);
    const int left = column * static_cast<int>(s.stride_w) - static_cast<int>(s.pad_w);
    uint32_t tap = pack * kWide<T>;
    uint32_t down = tap / of_row;
    uint32_t across = (tap - down * of_row) / channels;
    uint32_t channel = tap - down * of_row - across * channels;
    const T* of_image = x + int64_t{image} * s.h * s.w * s.c;
    Pack<T, kWide<T>> result;
#pragma unroll
    for (int j = 0; j < kWide<T>; ++j) {
      const int from_y = top + static_cast<int>(down) * static_cast<int>(s.dilation_h);
      const int from_x = left + static_cast<int>(across) * static_cast<int>(s.dilation_w);
      const bool is_inside = tap < taps && from_y >= 0 && from_y < s.h && from_x >= 0 && from_x < s.w;
      result.items[j] =
          is_inside
              ? of_image[(from_y * static_cast<int>(s.w) + from_x) * static_cast<int>(channels) + channel]
              : To<T>(0);
      ++tap;
      if (++channel == channels) {
        channel = 0;
        if (++across == static_cast<uint32_t>(s.kernel_w)) {
          across = 0;
          ++down;
        }
      }
    }
    Store(result, reinterpret_cast<Pack<T, kWide<T>>*>(patches) + i);
  });
}

// A thread has kPack channels of a pixel.
template <typename T, int kPack>
void RunFold(const PatchSizes& sizes, const T* patches, T* x, Stream stream) {
  const PatchSizes s = sizes;
  const uint32_t packs = static_cast<uint32_t>(s.c / kPack);
  ForEach(s.n * s.h * s.w * packs, stream, [=] __device__(int64_t i) {
    const uint32_t pixel = static_cast<uint32_t>(i / packs);
    const int channel = static_cast<int>(i - int64_t{pixel} * packs) * kPack;
    const uint32_t line = pixel / static_cast<uint32_t>(s.w);
    const int column =
        static_cast<int>(pixel - line * static_cast<uint32_t>(s.w)) + static_cast<int>(s.pad_w);
    const uint32_t image = line / static_cast<uint32_t>(s.h);
    const int row = static_cast<int>(line - image * static_cast<uint32_t>(s.h)) + static_cast<int>(s.pad_h);
    const int stride_h = static_cast<int>(s.stride_h);
    const int stride_w = static_cast<int>(s.stride_w);
    float sums[kPack] = {};
    for (int down = 0; down < s.kernel_h; ++down) {
      const int from_y = row - down * static_cast<int>(s.dilation_h);
      if (from_y < 0) continue;
      const int out_y = stride_h == 1 ? from_y : from_y / stride_h;
      if (out_y * stride_h != from_y || out_y >= s.out_h) continue;
      for (int across = 0; across < s.kernel_w; ++across) {
        const int from_x = column - across * static_cast<int>(s.dilation_w);
        if (from_x < 0) continue;
        const int out_x = stride_w == 1 ? from_x : from_x / stride_w;
        if (out_x * stride_w != from_x || out_x >= s.out_w) continue;
        const int64_t place = (int64_t{image} * s.out_h + out_y) * s.out_w + out_x;
        const auto items = *reinterpret_cast<const Pack<T, kPack>*>(
            patches + place * s.width + (down * s.kernel_w + across) * s.c + channel);
#pragma unroll
        for (int j = 0; j < kPack; ++j) sums[j] += ToFloat(items.items[j]);
      }
    }
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) result.items[j] = To<T>(sums[j]);
    Store(result, reinterpret_cast<Pack<T, kPack>*>(x) + i);
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

void FoldPatches(const PatchSizes& sizes, DType type, const void* patches, void* x, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    const auto* from = static_cast<const T*>(patches);
    auto* to = static_cast<T*>(x);
    if (sizes.c % 4 == 0) return RunFold<T, 4>(sizes, from, to, stream);
    RunFold<T, 1>(sizes, from, to, stream);
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
