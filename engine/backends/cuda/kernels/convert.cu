#include "engine/backends/cuda/kernels/convert.h"

#include <algorithm>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

template <typename X, typename Y>
struct Cast {
  __device__ __forceinline__ Y operator()(X x) const { return To<Y>(ToFloat(x)); }
};
template <typename X>
struct Cast<X, X> {
  __device__ __forceinline__ X operator()(X x) const { return x; }
};
template <typename Y>
struct Cast<uint8_t, Y> {
  __device__ __forceinline__ Y operator()(uint8_t x) const { return To<Y>(static_cast<float>(x)); }
};
template <>
struct Cast<uint8_t, uint8_t> {
  __device__ __forceinline__ uint8_t operator()(uint8_t x) const { return x; }
};

// y [outer][columns][rows] = x [outer][rows][columns]. Tiles pass through shared memory, so that both sides
// are accessed in runs.
constexpr int kTile = 32;
constexpr int kTileThreads = 256;

template <typename X, typename Y>
TANDEM_KERNEL TransposeKernel(Grid grid, int64_t rows, int64_t columns, const X* x, Y* y) {
  __shared__ X tile[kTile][kTile + 1];
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int64_t base = static_cast<int64_t>(block.z) * rows * columns;
    const int64_t first_row = static_cast<int64_t>(block.y) * kTile;
    const int64_t first_column = static_cast<int64_t>(block.x) * kTile;
    const int lane = threadIdx.x % kTile;
    for (int i = threadIdx.x / kTile; i < kTile; i += static_cast<int>(blockDim.x) / kTile) {
      const int64_t row = first_row + i;
      const int64_t column = first_column + lane;
      if (row < rows && column < columns) tile[i][lane] = x[base + row * columns + column];
    }
    __syncthreads();
    for (int i = threadIdx.x / kTile; i < kTile; i += static_cast<int>(blockDim.x) / kTile) {
      const int64_t column = first_column + i;
      const int64_t row = first_row + lane;
      if (row < rows && column < columns) y[base + column * rows + row] = Cast<X, Y>()(tile[lane][i]);
    }
  }
}

// Converts elements in order, eight for each thread.
template <typename X, typename Y>
void ConvertInOrder(int64_t elements, const X* x, Y* y, Stream stream) {
  constexpr int kPack = 8;
  const int64_t packs = elements / kPack;
  ForEach((elements + kPack - 1) / kPack, stream, [=] __device__(int64_t i) {
    if (i < packs) {
      const auto items = reinterpret_cast<const Pack<X, kPack>*>(x)[i];
      Pack<Y, kPack> result;
#pragma unroll
      for (int k = 0; k < kPack; ++k) result.items[k] = Cast<X, Y>()(items.items[k]);
      Store(result, reinterpret_cast<Pack<Y, kPack>*>(y) + i);
    } else {
      for (int64_t k = i * kPack; k < elements; ++k) y[k] = Cast<X, Y>()(x[k]);
    }
  });
}

// As TransposeKernel, for matrices that fit into a multiprocessor's cache or would leave tiles empty.
template <typename X, typename Y>
void TransposeInCache(int64_t outer, int64_t rows, int64_t columns, const X* x, Y* y, Stream stream) {
  const int64_t plane = rows * columns;
  ForEach(outer * plane, stream, [=] __device__(int64_t i) {
    const int64_t base = i / plane * plane;
    const auto place = static_cast<uint32_t>(i - base);
    const uint32_t column = place / static_cast<uint32_t>(rows);
    const uint32_t row = place - column * static_cast<uint32_t>(rows);
    y[i] = Cast<X, Y>()(x[base + row * columns + column]);
  });
}

template <typename X, typename Y>
void Convert(const ChannelSizes& sizes, const void* x_data, bool x_last, void* y_data, bool y_last,
             Stream stream) {
  const X* x = static_cast<const X*>(x_data);
  Y* y = static_cast<Y*>(y_data);
  if (x_last == y_last) return ConvertInOrder(sizes.elements(), x, y, stream);
  const int64_t rows = x_last ? sizes.inner : sizes.channels;
  const int64_t columns = x_last ? sizes.channels : sizes.inner;
  if (rows * columns <= 4096 || std::min(rows, columns) < kTile / 4) {
    return TransposeInCache(sizes.outer, rows, columns, x, y, stream);
  }
  const auto tiles = [](int64_t n) { return static_cast<unsigned>((n + kTile - 1) / kTile); };
  Launch(TransposeKernel<X, Y>, {tiles(columns), tiles(rows), static_cast<unsigned>(sizes.outer)},
         Threads(kTileThreads), stream, rows, columns, x, y);
}

template <typename T>
TANDEM_KERNEL NarrowKernel(NarrowTable table) {
  constexpr int kPack = 8;
  const ChangePiece piece = table.pieces[blockIdx.x];
  const NarrowedTensor tensor = table.tensors[piece.tensor];
  const int64_t begin = piece.index * table.piece_size;
  const int64_t end = begin + table.piece_size < tensor.elements ? begin + table.piece_size : tensor.elements;
  T* target = static_cast<T*>(tensor.target);
  const int64_t packs_end = begin + (end - begin) / kPack * kPack;
  for (int64_t i = begin + threadIdx.x * kPack; i < packs_end; i += blockDim.x * kPack) {
    const Pack<float, kPack / 2> low = *reinterpret_cast<const Pack<float, kPack / 2>*>(tensor.source + i);
    const Pack<float, kPack / 2> high =
        *reinterpret_cast<const Pack<float, kPack / 2>*>(tensor.source + i + kPack / 2);
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack / 2; ++j) {
      result.items[j] = To<T>(low.items[j]);
      result.items[kPack / 2 + j] = To<T>(high.items[j]);
    }
    Store(result, reinterpret_cast<Pack<T, kPack>*>(target + i));
  }
  const int64_t rest = packs_end + threadIdx.x;
  if (rest < end) target[rest] = To<T>(tensor.source[rest]);
}

}  // namespace

void ConvertLayout(const ChannelSizes& sizes, const void* x, DType x_type, bool x_channels_last, void* y,
                   DType y_type, bool y_channels_last, Stream stream) {
  const auto convert = [&](auto from, auto to) {
    Convert<decltype(from), decltype(to)>(sizes, x, x_channels_last, y, y_channels_last, stream);
  };
  if (x_type != y_type) {
    if (x_type == DType::kUInt8) {
      WithNumber(y_type, [&](auto to) { convert(uint8_t(), to); });
    } else if (x_type == DType::kFloat32) {
      WithNumber(y_type, [&](auto to) { convert(float(), to); });
    } else {
      WithNumber(x_type, [&](auto from) { convert(from, float()); });
    }
    return;
  }
  switch (SizeOf(x_type)) {
    case 1:
      return convert(uint8_t(), uint8_t());
    case 2:
      return convert(Bf16(), Bf16());
    case 4:
      return convert(float(), float());
    default:
      return convert(double(), double());
  }
}

void NarrowTensors(const NarrowTable& table, DType type, Stream stream) {
  InParts(table.piece_count, MostBlocks(), [&](unsigned first, unsigned count) {
    NarrowTable part = table;
    part.pieces += first;
    if (type == DType::kBFloat16) {
      Launch(NarrowKernel<Bf16>, {count}, Threads(), stream, part);
    } else {
      Launch(NarrowKernel<Half>, {count}, Threads(), stream, part);
    }
  });
}

}  // namespace tandem::cuda
