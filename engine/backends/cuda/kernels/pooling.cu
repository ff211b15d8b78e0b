#include "engine/backends/cuda/kernels/pooling.h"

#include "engine/backends/cuda/kernels/image_place.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {
namespace {

// Windows, or elements of a window, from `begin` to before `end`.
struct Range {
  int begin;
  int end;
};

// Returns the elements of the window at `position` that are within `extent`.
__device__ __forceinline__ Range WithinImage(int position, int stride, int padding, int window, int extent) {
  const int corner = position * stride - padding;
  return {max(0, -corner), min(window, extent - corner)};
}

// Returns the windows that include `position` of the image.
__device__ __forceinline__ Range Reaching(int position, int stride, int padding, int window, int windows) {
  const int shifted = position + padding;
  return {shifted < window ? 0 : (shifted - window) / stride + 1, min(windows, shifted / stride + 1)};
}

// Returns the divisor of the window (i, j).
__device__ __forceinline__ float Divisor(const PoolSizes& s, int i, int j) {
  if (s.count_padding) {
    // Elements beyond the padding do not count.
    const int rows = min(s.window_height, s.x.height + 2 * s.padding_height - i * s.stride_height);
    const int columns = min(s.window_width, s.x.width + 2 * s.padding_width - j * s.stride_width);
    return static_cast<float>(rows) * static_cast<float>(columns);
  }
  const Range rows = WithinImage(i, s.stride_height, s.padding_height, s.window_height, s.x.height);
  const Range columns = WithinImage(j, s.stride_width, s.padding_width, s.window_width, s.x.width);
  return static_cast<float>(rows.end - rows.begin) * static_cast<float>(columns.end - columns.begin);
}

// Returns the element of a plain image that is `k` channels after a place. The lanes are the channels.
__device__ __forceinline__ int64_t PlainElementOf(const ImageSizes& sizes, const ImagePlace& at, int k) {
  return ((at.outer * sizes.lanes + at.lane + k) * sizes.height + at.row) * sizes.width + at.column;
}

// The lanes from at.lane on at a place of the pooled images `out`.
template <typename T, int kPack>
__device__ __forceinline__ Pack<T, kPack> LoadPooled(const ImageSizes& out, bool plain, const ImagePlace& at,
                                                     const T* from) {
  if (!plain) {
    return *reinterpret_cast<const Pack<T, kPack>*>(from +
                                                    ElementOf(out, at.outer, at.row, at.column, at.lane));
  }
  Pack<T, kPack> items;
#pragma unroll
  for (int k = 0; k < kPack; ++k) items.items[k] = from[PlainElementOf(out, at, k)];
  return items;
}

template <typename T, int kPack>
__device__ __forceinline__ void StorePooled(const ImageSizes& out, bool plain, const ImagePlace& at,
                                            const Pack<T, kPack>& items, T* to) {
  if (!plain) {
    Store(items,
          reinterpret_cast<Pack<T, kPack>*>(to + ElementOf(out, at.outer, at.row, at.column, at.lane)));
    return;
  }
#pragma unroll
  for (int k = 0; k < kPack; ++k) to[PlainElementOf(out, at, k)] = items.items[k];
}

template <typename T, int kPack>
void RunMaxPool(const PoolSizes& s, const T* x, T* y, uint8_t* index, Stream stream) {
  const ImageSizes out = s.y();
  ForEach(out.elements() / kPack, stream, [=] __device__(int64_t i) {
    const ImagePlace at = PlaceOfPack<kPack>(out, i);
    const Range rows = WithinImage(at.row, s.stride_height, s.padding_height, s.window_height, s.x.height);
    const Range columns = WithinImage(at.column, s.stride_width, s.padding_width, s.window_width, s.x.width);
    const int top = at.row * s.stride_height - s.padding_height;
    const int left = at.column * s.stride_width - s.padding_width;
    Pack<T, kPack> largest = {};
    float numbers[kPack];
    Pack<uint8_t, kPack> places = {};
    bool first = true;
    for (int p = rows.begin; p < rows.end; ++p) {
      for (int q = columns.begin; q < columns.end; ++q) {
        const auto items = *reinterpret_cast<const Pack<T, kPack>*>(
            x + ElementOf(s.x, at.outer, top + p, left + q, at.lane));
        const auto place = static_cast<uint8_t>(p * s.window_width + q);
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          const float number = ToFloat(items.items[k]);
          if (first || number > numbers[k] || number != number) {
            numbers[k] = number;
            largest.items[k] = items.items[k];
            places.items[k] = place;
          }
        }
        first = false;
      }
    }
    Store(places, reinterpret_cast<Pack<uint8_t, kPack>*>(index + i * kPack));
    StorePooled(out, s.plain_y, at, largest, y);
  });
}

// Each element of x checks whether it was the maximum of the windows that include it.
template <typename T, int kPack>
void RunMaxPoolGrad(const PoolSizes& s, const uint8_t* index, const T* dy, T* dx, Stream stream) {
  const ImageSizes out = s.y();
  ForEach(s.x.elements() / kPack, stream, [=] __device__(int64_t i) {
    const ImagePlace at = PlaceOfPack<kPack>(s.x, i);
    const Range rows = Reaching(at.row, s.stride_height, s.padding_height, s.window_height, s.out_height);
    const Range columns = Reaching(at.column, s.stride_width, s.padding_width, s.window_width, s.out_width);
    float sums[kPack] = {};
    for (int p = rows.begin; p < rows.end; ++p) {
      const int place_row = (at.row + s.padding_height - p * s.stride_height) * s.window_width;
      for (int q = columns.begin; q < columns.end; ++q) {
        const int place = place_row + at.column + s.padding_width - q * s.stride_width;
        const ImagePlace window = {at.outer, p, q, at.lane};
        const auto places = LoadPooled<uint8_t, kPack>(out, false, window, index);
        const auto grads = LoadPooled<T, kPack>(out, s.plain_y, window, dy);
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          if (places.items[k] == place) sums[k] += ToFloat(grads.items[k]);
        }
      }
    }
    Pack<T, kPack> result;
#pragma unroll
    for (int k = 0; k < kPack; ++k) result.items[k] = To<T>(sums[k]);
    Store(result, reinterpret_cast<Pack<T, kPack>*>(dx + i * kPack));
  });
}

template <typename T, int kPack>
void RunAveragePool(const PoolSizes& s, const T* x, T* y, Stream stream) {
  const ImageSizes out = s.y();
  ForEach(out.elements() / kPack, stream, [=] __device__(int64_t i) {
    const ImagePlace at = PlaceOfPack<kPack>(out, i);
    const Range rows = WithinImage(at.row, s.stride_height, s.padding_height, s.window_height, s.x.height);
    const Range columns = WithinImage(at.column, s.stride_width, s.padding_width, s.window_width, s.x.width);
    const int top = at.row * s.stride_height - s.padding_height;
    const int left = at.column * s.stride_width - s.padding_width;
    float sums[kPack] = {};
    for (int p = rows.begin; p < rows.end; ++p) {
      for (int q = columns.begin; q < columns.end; ++q) {
        const auto items = *reinterpret_cast<const Pack<T, kPack>*>(
            x + ElementOf(s.x, at.outer, top + p, left + q, at.lane));
#pragma unroll
        for (int k = 0; k < kPack; ++k) sums[k] += ToFloat(items.items[k]);
      }
    }
    const float divisor = Divisor(s, at.row, at.column);
    Pack<T, kPack> result;
#pragma unroll
    for (int k = 0; k < kPack; ++k) result.items[k] = To<T>(sums[k] / divisor);
    StorePooled(out, s.plain_y, at, result, y);
  });
}

// y [outer][lanes]: the mean over all pixels. A lane of a warp has a pack of channels. The block's warps
// share the pixels.
template <typename T, int kPack>
TANDEM_KERNEL MeanOfLanesKernel(Grid grid, int64_t pixels, int lanes, float divisor, const T* x, T* y) {
  __shared__ float of_warps[kThreads / kWarpSize][kWarpSize][kPack];
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int in_warp = threadIdx.x % kWarpSize;
    const int warp = threadIdx.x / kWarpSize;
    const int64_t lane = (static_cast<int64_t>(block.y) * kWarpSize + in_warp) * kPack;
    float sums[kPack] = {};
    if (lane < lanes) {
      const T* image = x + static_cast<int64_t>(block.x) * pixels * lanes + lane;
      for (int64_t pixel = warp; pixel < pixels; pixel += blockDim.x / kWarpSize) {
        const auto items = *reinterpret_cast<const Pack<T, kPack>*>(image + pixel * lanes);
#pragma unroll
        for (int k = 0; k < kPack; ++k) sums[k] += ToFloat(items.items[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kPack; ++k) of_warps[warp][in_warp][k] = sums[k];
    __syncthreads();
    if (warp != 0 || lane >= lanes) continue;
    Pack<T, kPack> result;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      for (int other = 1; other < static_cast<int>(blockDim.x) / kWarpSize; ++other)
        sums[k] += of_warps[other][in_warp][k];
      result.items[k] = To<T>(sums[k] / divisor);
    }
    Store(result, reinterpret_cast<Pack<T, kPack>*>(y + static_cast<int64_t>(block.x) * lanes + lane));
  }
}

// y [planes]: the mean over all pixels of each plane. A warp has a plane.
template <typename T>
TANDEM_KERNEL MeanOfPlanesKernel(Grid grid, int64_t planes, int64_t pixels, float divisor, const T* x, T* y) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int64_t plane = static_cast<int64_t>(block.x) * (blockDim.x / kWarpSize) + threadIdx.x / kWarpSize;
    float sum = 0;
    if (plane < planes) {
      for (int64_t pixel = threadIdx.x % kWarpSize; pixel < pixels; pixel += kWarpSize) {
        sum += ToFloat(x[plane * pixels + pixel]);
      }
    }
    sum = ReduceWarp(sum, Sum());
    if (plane < planes && threadIdx.x % kWarpSize == 0) y[plane] = To<T>(sum / divisor);
  }
}

// For a single window that covers the image, with this number of pixels.
template <typename T, int kPack>
void RunMean(const PoolSizes& s, const T* x, T* y, Stream stream) {
  const int64_t pixels = s.x.pixels();
  const auto divisor = static_cast<float>(pixels);
  if (s.x.lanes == 1) {
    Launch(MeanOfPlanesKernel<T>, BlocksFor(s.x.outer * kWarpSize), Threads(), stream, s.x.outer, pixels,
           divisor, x, y);
    return;
  }
  constexpr int kLanes = kWarpSize * kPack;
  const Grid grid = {static_cast<unsigned>(s.x.outer),
                     static_cast<unsigned>((s.x.lanes + kLanes - 1) / kLanes)};
  Launch(MeanOfLanesKernel<T, kPack>, grid, Threads(), stream, pixels, s.x.lanes, divisor, x, y);
}

template <typename T, int kPack>
void RunAveragePoolGrad(const PoolSizes& s, const T* dy, T* dx, Stream stream) {
  const ImageSizes out = s.y();
  ForEach(s.x.elements() / kPack, stream, [=] __device__(int64_t i) {
    const ImagePlace at = PlaceOfPack<kPack>(s.x, i);
    const Range rows = Reaching(at.row, s.stride_height, s.padding_height, s.window_height, s.out_height);
    const Range columns = Reaching(at.column, s.stride_width, s.padding_width, s.window_width, s.out_width);
    float sums[kPack] = {};
    for (int p = rows.begin; p < rows.end; ++p) {
      for (int q = columns.begin; q < columns.end; ++q) {
        const auto grads = LoadPooled<T, kPack>(out, s.plain_y, {at.outer, p, q, at.lane}, dy);
        const float divisor = Divisor(s, p, q);
#pragma unroll
        for (int k = 0; k < kPack; ++k) sums[k] += ToFloat(grads.items[k]) / divisor;
      }
    }
    Pack<T, kPack> result;
#pragma unroll
    for (int k = 0; k < kPack; ++k) result.items[k] = To<T>(sums[k]);
    Store(result, reinterpret_cast<Pack<T, kPack>*>(dx + i * kPack));
  });
}

}  // namespace

void MaxPool(const PoolSizes& sizes, DType type, const void* x, void* y, uint8_t* index, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    WithPack<T>(sizes.x.lanes, [&](auto pack) {
      RunMaxPool<T, decltype(pack)::value>(sizes, static_cast<const T*>(x), static_cast<T*>(y), index,
                                           stream);
    });
  });
}

void MaxPoolGrad(const PoolSizes& sizes, DType type, const uint8_t* index, const void* dy, void* dx,
                 Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    WithPack<T>(sizes.x.lanes, [&](auto pack) {
      RunMaxPoolGrad<T, decltype(pack)::value>(sizes, index, static_cast<const T*>(dy), static_cast<T*>(dx),
                                               stream);
    });
  });
}

void AveragePool(const PoolSizes& sizes, DType type, const void* x, void* y, Stream stream) {
  const bool whole = sizes.out_height == 1 && sizes.out_width == 1 && sizes.padding_height == 0 &&
                     sizes.padding_width == 0 && sizes.window_height == sizes.x.height &&
                     sizes.window_width == sizes.x.width;
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    WithPack<T>(sizes.x.lanes, [&](auto pack) {
      const auto run = whole ? RunMean<T, decltype(pack)::value> : RunAveragePool<T, decltype(pack)::value>;
      run(sizes, static_cast<const T*>(x), static_cast<T*>(y), stream);
    });
  });
}

void AveragePoolGrad(const PoolSizes& sizes, DType type, const void* dy, void* dx, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    WithPack<T>(sizes.x.lanes, [&](auto pack) {
      RunAveragePoolGrad<T, decltype(pack)::value>(sizes, static_cast<const T*>(dy), static_cast<T*>(dx),
                                                   stream);
    });
  });
}

}  // namespace tandem::cuda
