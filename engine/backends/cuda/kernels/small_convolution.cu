#include "engine/backends/cuda/kernels/small_convolution.h"

#include <algorithm>
#include <type_traits>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

constexpr int kMostTaps = 32;
constexpr int kMostFilters = 128;
// A block of the gradient has a thread for each tap and pack of filters; every launch limit allows so many
// threads.
constexpr int kMostOfGroup = 128;
// Blocks for each multiprocessor.
constexpr int kForwardBlocks = 8;
constexpr int kGradBlocks = 4;

// What the kernels use of the sizes, in 32 bits.
struct Extents {
  int h, w, c, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w,
      filters;
};

Extents ExtentsOf(const SmallConvolution& convolution) {
  const PatchSizes& s = convolution.sizes;
  const auto narrow = [](int64_t number) { return static_cast<int>(number); };
  return {narrow(s.h),          narrow(s.w),
          narrow(s.c),          narrow(s.out_h),
          narrow(s.out_w),      narrow(s.kernel_h),
          narrow(s.kernel_w),   narrow(s.stride_h),
          narrow(s.stride_w),   narrow(s.pad_h),
          narrow(s.pad_w),      narrow(s.dilation_h),
          narrow(s.dilation_w), narrow(convolution.filters)};
}

// Filters that a thread computes: as many as divide them and lie in 16 bytes.
int PackOf(const SmallConvolution& convolution) {
  int pack = 16 / static_cast<int>(SizeOf(convolution.type));
  while (convolution.filters % pack != 0) pack /= 2;
  return pack;
}

// Calls `function` with a Pack of the type, of PackOf numbers.
template <typename Function>
void WithFilterPack(const SmallConvolution& convolution, const Function& function) {
  WithNumber(convolution.type, [&](auto number) {
    using T = decltype(number);
    const int pack = PackOf(convolution);
    if constexpr (sizeof(T) == 2) {
      if (pack == 8) return function(Pack<T, 8>());
    }
    if (pack == 4) return function(Pack<T, 4>());
    if (pack == 2) return function(Pack<T, 2>());
    function(Pack<T, 1>());
  });
}

// A thread has a pack of filters at one position at a time.
template <typename T, int kPack>
TANDEM_KERNEL ForwardKernel(Grid grid, uint32_t items, Extents e, const T* x, const T* weight,
                            const float* bias, bool relu, T* y) {
  __shared__ float weights[kMostTaps * kMostFilters];  // [taps, filters]
  const int taps = e.kernel_h * e.kernel_w * e.c;
  for (int i = threadIdx.x; i < taps * e.filters; i += blockDim.x) {
    weights[i % taps * e.filters + i / taps] = ToFloat(weight[i]);
  }
  __syncthreads();
  const uint32_t packs = e.filters / kPack;
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    for (uint32_t i = block.x * blockDim.x + threadIdx.x; i < items; i += grid.x * blockDim.x) {
      const uint32_t position = i / packs;
      const int first = static_cast<int>(i - position * packs) * kPack;
      const uint32_t line = position / e.out_w;
      const int column = static_cast<int>(position - line * e.out_w);
      const uint32_t image = line / e.out_h;
      const int top = static_cast<int>(line - image * e.out_h) * e.stride_h - e.pad_h;
      const int left = column * e.stride_w - e.pad_w;
      float sums[kPack];
#pragma unroll
      for (int j = 0; j < kPack; ++j) sums[j] = bias != nullptr ? bias[first + j] : 0;
      const float* factors = weights + first;
      for (int down = 0; down < e.kernel_h; ++down) {
        const int row = top + down * e.dilation_h;
        for (int across = 0; across < e.kernel_w; ++across) {
          const int from = left + across * e.dilation_w;
          const bool is_inside = row >= 0 && row < e.h && from >= 0 && from < e.w;
          const T* pixel = x + ((static_cast<int64_t>(image) * e.h + row) * e.w + from) * e.c;
          for (int channel = 0; channel < e.c; ++channel, factors += e.filters) {
            if (!is_inside) continue;
            const float number = ToFloat(pixel[channel]);
#pragma unroll
            for (int j = 0; j < kPack; ++j) sums[j] = fmaf(number, factors[j], sums[j]);
          }
        }
      }
      Pack<T, kPack> result;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        if (relu && sums[j] < 0) sums[j] = 0;
        result.items[j] = To<T>(sums[j]);
      }
      Store(result, reinterpret_cast<Pack<T, kPack>*>(y) + i);
    }
  }
}

// A block has some lines of results, which groups of threads take in turns; a thread of a group has a tap and
// a pack of filters.
template <typename T, int kPack>
TANDEM_KERNEL GradWeightKernel(Grid grid, int lines, int lines_of_block, Extents e, const T* x, const T* dy,
                               float* partials) {
  __shared__ float all[kPack * kThreads];
  const int taps = e.kernel_h * e.kernel_w * e.c;
  const int packs = e.filters / kPack;
  const int of_group = taps * packs;
  const int groups = blockDim.x / of_group;
  const int group = threadIdx.x / of_group;
  const int within = threadIdx.x - group * of_group;
  const int tap = within / packs;
  const int first = (within - tap * packs) * kPack;
  const int channel = tap % e.c;
  const int across = tap / e.c % e.kernel_w;
  const int down = tap / e.c / e.kernel_w;
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    float sums[kPack] = {};
    const int begin = block.x * lines_of_block;
    const int end = begin + lines_of_block < lines ? begin + lines_of_block : lines;
    for (int line = begin + group; group < groups && line < end; line += groups) {
      const int image = line / e.out_h;
      const int row = (line - image * e.out_h) * e.stride_h - e.pad_h + down * e.dilation_h;
      if (row < 0 || row >= e.h) continue;
      const T* pixels = x + (static_cast<int64_t>(image) * e.h + row) * e.w * e.c + channel;
      const T* grads = dy + static_cast<int64_t>(line) * e.out_w * e.filters + first;
      int from = across * e.dilation_w - e.pad_w;
#pragma unroll 4
      for (int column = 0; column < e.out_w; ++column, from += e.stride_w, grads += e.filters) {
        const float number = from >= 0 && from < e.w ? ToFloat(pixels[from * e.c]) : 0;
        const auto grad = *reinterpret_cast<const Pack<T, kPack>*>(grads);
#pragma unroll
        for (int j = 0; j < kPack; ++j) sums[j] = fmaf(number, ToFloat(grad.items[j]), sums[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) all[j * kThreads + threadIdx.x] = sums[j];
    __syncthreads();
    if (group == 0) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        float sum = sums[j];
        for (int other = 1; other < groups; ++other) sum += all[j * kThreads + other * of_group + within];
        partials[(static_cast<int64_t>(block.x) * e.filters + first + j) * taps + tap] = sum;
      }
    }
  }
}

int64_t Lines(const SmallConvolution& convolution) { return convolution.sizes.n * convolution.sizes.out_h; }

int64_t LinesOfPiece(const SmallConvolution& convolution) {
  const int64_t blocks = int64_t{kGradBlocks} * convolution.multiprocessors;
  return (Lines(convolution) + blocks - 1) / blocks;
}

}  // namespace

bool IsSmall(const SmallConvolution& convolution) {
  constexpr int64_t kMostItems = int64_t{1} << 31;
  const PatchSizes& s = convolution.sizes;
  const int64_t taps = s.kernel_h * s.kernel_w * s.c;
  return taps <= kMostTaps && convolution.filters <= kMostFilters &&
         taps * convolution.filters / PackOf(convolution) <= kMostOfGroup &&
         s.rows() * convolution.filters < kMostItems && s.n * s.h * s.w * s.c < kMostItems;
}

void ConvolveSmall(const SmallConvolution& convolution, const void* x, const void* weight, const float* bias,
                   bool relu, void* y, Stream stream) {
  WithFilterPack(convolution, [&](auto pack) {
    constexpr int kPack = sizeof(pack.items) / sizeof(pack.items[0]);
    using T = std::remove_reference_t<decltype(pack.items[0])>;
    const int64_t items = convolution.sizes.rows() * convolution.filters / kPack;
    const int threads = Threads();
    const int64_t blocks = std::min<int64_t>((items + threads - 1) / threads,
                                             int64_t{kForwardBlocks} * convolution.multiprocessors);
    Launch(ForwardKernel<T, kPack>, {static_cast<unsigned>(blocks)}, threads, stream,
           static_cast<uint32_t>(items), ExtentsOf(convolution), static_cast<const T*>(x),
           static_cast<const T*>(weight), bias, relu, static_cast<T*>(y));
  });
}

int64_t GradWeightPieces(const SmallConvolution& convolution) {
  const int64_t of_piece = LinesOfPiece(convolution);
  return (Lines(convolution) + of_piece - 1) / of_piece;
}

void GradWeightSmall(const SmallConvolution& convolution, const void* x, const void* dy, float* partials,
                     Stream stream) {
  WithFilterPack(convolution, [&](auto pack) {
    constexpr int kPack = sizeof(pack.items) / sizeof(pack.items[0]);
    using T = std::remove_reference_t<decltype(pack.items[0])>;
    Launch(GradWeightKernel<T, kPack>, {static_cast<unsigned>(GradWeightPieces(convolution))}, Threads(),
           stream, static_cast<int>(Lines(convolution)), static_cast<int>(LinesOfPiece(convolution)),
           ExtentsOf(convolution), static_cast<const T*>(x), static_cast<const T*>(dy), partials);
  });
}

}  // namespace tandem::cuda
