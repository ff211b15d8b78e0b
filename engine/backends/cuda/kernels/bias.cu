#include "engine/backends/cuda/kernels/bias.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {
namespace {

// Returns the number of neighbouring channels that a thread handles at once, at most 16 bytes. It divides the
// number of channels, so that each row is aligned.
int WidthFor(int64_t channels, DType type) {
  int width = static_cast<int>(16 / SizeOf(type));
  while (channels % width != 0) width /= 2;
  return width;
}

// Calls function(T(), width) with the width as a constant.
template <typename Function>
void WithWidth(int width, const Function& function) {
  switch (width) {
    case 8:
      return function(std::integral_constant<int, 8>());
    case 4:
      return function(std::integral_constant<int, 4>());
    case 2:
      return function(std::integral_constant<int, 2>());
    default:
      return function(std::integral_constant<int, 1>());
  }
}

template <typename T, int kWidth>
TANDEM_KERNEL BiasLastKernel(int64_t packs, int64_t columns, const T* x, const float* bias, bool relu, T* y) {
  using Items = Pack<T, kWidth>;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += stride) {
    Items items = reinterpret_cast<const Items*>(x)[i];
    const int64_t column = i % columns;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      float value = ToFloat(items.items[j]);
      if (bias != nullptr) value += bias[column * kWidth + j];
      if (relu && value < 0) value = 0;
      items.items[j] = To<T>(value);
    }
    Store(items, reinterpret_cast<Items*>(y) + i);
  }
}

template <typename T>
TANDEM_KERNEL BiasPlainKernel(int64_t elements, int64_t channels, int64_t inner, const T* x,
                              const float* bias, bool relu, T* y) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    float value = ToFloat(x[i]);
    if (bias != nullptr) value += bias[i / inner % channels];
    if (relu && value < 0) value = 0;
    y[i] = To<T>(value);
  }
}

Grid BlocksUpTo(int64_t threads) {
  const int64_t blocks = (threads + Threads() - 1) / Threads();
  return WithinLimits({static_cast<unsigned>(std::min<int64_t>(blocks, 1 << 16))});
}

// Sums over the rows of [rows, columns of kWidth channels] into [pieces, channels]. A block has a piece of
// the rows, and up to as many columns as threads. Its threads cover as many rows side by side as fit.
template <typename T, int kWidth>
TANDEM_KERNEL SumRowsKernel(Grid grid, int64_t rows, int64_t columns, int64_t piece, const T* x,
                            float* sums) {
  __shared__ float shared[kThreads * kWidth];
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    using Items = Pack<T, kWidth>;
    const int64_t first_column = static_cast<int64_t>(block.y) * blockDim.x;
    const int width = static_cast<int>(min(columns - first_column, static_cast<int64_t>(blockDim.x)));
    const int lines = static_cast<int>(blockDim.x) / width;
    const int line = static_cast<int>(threadIdx.x) / width;
    const int column = static_cast<int>(threadIdx.x) % width;
    const int64_t begin = static_cast<int64_t>(block.x) * piece;
    const int64_t end = min(begin + piece, rows);
    float own[kWidth] = {};
    if (line < lines) {
      for (int64_t row = begin + line; row < end; row += lines) {
        const Items items = reinterpret_cast<const Items*>(x)[row * columns + first_column + column];
#pragma unroll
        for (int j = 0; j < kWidth; ++j) own[j] += ToFloat(items.items[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j) shared[j * kThreads + threadIdx.x] = own[j];
    for (int left = lines; left > 1;) {
      const int half = (left + 1) / 2;
      __syncthreads();
      if (line < left - half) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
          own[j] += shared[j * kThreads + threadIdx.x + half * width];
          shared[j * kThreads + threadIdx.x] = own[j];
        }
      }
      left = half;
    }
    if (line == 0) {
      float* to = sums + (static_cast<int64_t>(block.x) * columns + first_column + column) * kWidth;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) to[j] = own[j];
    }
  }
}

// Sums over the positions of [outer, channels, inner] into [outer pieces, channels].
template <typename T>
TANDEM_KERNEL SumPlanesKernel(Grid grid, int64_t outer, int64_t channels, int64_t inner, int64_t piece,
                              const T* x, float* sums) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int64_t channel = block.y;
    const int64_t begin = static_cast<int64_t>(block.x) * piece;
    const int64_t end = min(begin + piece, outer);
    float own = 0;
    for (int64_t n = begin; n < end; ++n) {
      const T* plane = x + (n * channels + channel) * inner;
      for (int64_t i = threadIdx.x; i < inner; i += blockDim.x) own += ToFloat(plane[i]);
    }
    own = ReduceBlock(own, 0.0f, Sum());
    if (threadIdx.x == 0) sums[static_cast<int64_t>(block.x) * channels + channel] = own;
  }
}

constexpr int64_t kMostPieces = 256;

// The division of the first sum: the number of units that a block handles in turn, and the number of pieces.
// The second sum adds the pieces.
struct Pieces {
  int64_t piece = 1;
  int64_t count = 1;
};

Pieces Share(int64_t items, int64_t at_least) {
  Pieces pieces;
  pieces.piece = std::max(at_least, (items + kMostPieces - 1) / kMostPieces);
  pieces.count = (items + pieces.piece - 1) / pieces.piece;
  return pieces;
}

Pieces PiecesOf(const ChannelSizes& sizes, bool rows) {
  if (!rows) return Share(sizes.outer, std::max<int64_t>(1, 2048 / sizes.inner));
  // Enough for each thread to load several times.
  const int64_t lines = std::max<int64_t>(1, kThreads / sizes.channels);
  return Share(sizes.outer * sizes.inner, 32 * lines);
}

bool LieInRows(const ChannelSizes& sizes, bool channels_last) {
  return channels_last || sizes.inner == 1 || sizes.channels == 1;
}

template <typename T>
void SumRows(int64_t rows, int64_t channels, const Pieces& pieces, DType type, const void* x, float* sums,
             Stream stream) {
  WithWidth(WidthFor(channels, type), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    if constexpr (kWidth * sizeof(T) <= 16) {
      const int64_t columns = channels / kWidth;
      Launch(
          SumRowsKernel<T, kWidth>,
          {static_cast<unsigned>(pieces.count), static_cast<unsigned>((columns + Threads() - 1) / Threads())},
          Threads(), stream, rows, columns, pieces.piece, static_cast<const T*>(x), sums);
    }
  });
}

template <typename T>
void AddBias(const ChannelSizes& sizes, bool rows, DType type, const void* x, const float* bias, bool relu,
             void* y, Stream stream) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  const int64_t elements = sizes.elements();
  if (!rows) {
    Launch(BiasPlainKernel<T>, BlocksUpTo(elements), Threads(), stream, elements, sizes.channels, sizes.inner,
           from, bias, relu, to);
    return;
  }
  WithWidth(WidthFor(sizes.channels, type), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    if constexpr (kWidth * sizeof(T) <= 16) {
      const int64_t packs = elements / kWidth;
      Launch(BiasLastKernel<T, kWidth>, BlocksUpTo(packs), Threads(), stream, packs, sizes.channels / kWidth,
             from, bias, relu, to);
    }
  });
}

}  // namespace

void AddChannelBias(const ChannelSizes& sizes, bool channels_last, DType type, const void* x,
                    const float* bias, bool relu, void* y, Stream stream) {
  if (sizes.elements() == 0) return;
  WithNumber(type, [&](auto number) {
    AddBias<decltype(number)>(sizes, LieInRows(sizes, channels_last), type, x, bias, relu, y, stream);
  });
}

int64_t SumChannelsBytes(const ChannelSizes& sizes, bool channels_last) {
  const Pieces pieces = PiecesOf(sizes, LieInRows(sizes, channels_last));
  return pieces.count == 1 ? 0 : pieces.count * sizes.channels * static_cast<int64_t>(sizeof(float));
}

void SumChannels(const ChannelSizes& sizes, bool channels_last, DType type, const void* x, float* workspace,
                 float* sums, Stream stream) {
  const bool rows = LieInRows(sizes, channels_last);
  const Pieces pieces = PiecesOf(sizes, rows);
  float* first = pieces.count == 1 ? sums : workspace;
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    if (rows) {
      SumRows<T>(sizes.outer * sizes.inner, sizes.channels, pieces, type, x, first, stream);
    } else {
      Launch(SumPlanesKernel<T>, {static_cast<unsigned>(pieces.count), static_cast<unsigned>(sizes.channels)},
             Threads(), stream, sizes.outer, sizes.channels, sizes.inner, pieces.piece,
             static_cast<const T*>(x), first);
    }
  });
  if (pieces.count == 1) return;
  const Pieces all = {.piece = pieces.count, .count = 1};
  SumRows<float>(pieces.count, sizes.channels, all, DType::kFloat32, workspace, sums, stream);
}

}  // namespace tandem::cuda
