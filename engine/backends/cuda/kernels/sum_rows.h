#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SUM_ROWS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SUM_ROWS_H_

#include "engine/backends/cuda/kernels/reduce.h"
#include "engine/backends/cuda/kernels/row_sums.h"

// Losses and counts. Groups of threads work on rows. The results of rows are added in double, in an order
// that depends on the sizes alone.

namespace tandem::cuda {

// The threads of a row.
template <int kLanes>
struct Lanes {
  int lane;
  // Reduces over the row's threads. All must call it, and all get the result.
  template <typename Combine, typename T>
  __device__ __forceinline__ T Reduce(T value, T identity, Combine combine) const {
    if constexpr (kLanes > kWarpSize) {
      return ReduceBlock(value, identity, combine);
    } else {
#pragma unroll
      for (int mask = kLanes / 2; mask > 0; mask /= 2) {
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
      }
      return value;
    }
  }
};

// The result of a row, or the sum of all rows.
template <int kSums>
struct Sums {
  double of[kSums];
};

template <int kSums, typename Finish>
__device__ __forceinline__ void FinishBlock(const BlockLoop& block, const Grid& grid, Sums<kSums> sums,
                                            Sums<kSums>* pieces, const Finish& finish) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums.of[i] = ReduceBlock(sums.of[i], 0.0, Sum());
  if (threadIdx.x != 0) return;
  if (grid.x == 1) {
    finish(sums);
  } else {
    pieces[block.x] = sums;
  }
}

// All threads of a row call `row(n, Lanes<kLanes>, counts)`. Only the result on the row's first thread
// counts. Row::kSums is the number of sums in a result. If `counts` is false, the threads repeat the last
// row: they only take part in reductions, and must write nothing.
template <int kLanes, typename Row, typename Finish>
TANDEM_KERNEL __launch_bounds__(1024) SumRowsKernel(Grid grid, int64_t rows, int64_t rows_of_block, Row row,
                                                    Sums<Row::kSums>* pieces, Finish finish) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int lane = threadIdx.x % kLanes;
    const int group = threadIdx.x / kLanes;
    const int groups = blockDim.x / kLanes;
    const int64_t begin = block.x * rows_of_block;
    const int64_t end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
    Sums<Row::kSums> sums;
    for (double& sum : sums.of) sum = 0;
    for (int64_t first = begin; first < end; first += groups) {
      const int64_t n = first + group;
      const bool counts = n < end;
      const Sums<Row::kSums> brought = row(counts ? n : end - 1, Lanes<kLanes>{lane}, counts);
      if (!counts || lane != 0) continue;
      for (int i = 0; i < Row::kSums; ++i) sums.of[i] += brought.of[i];
    }
    FinishBlock(block, grid, sums, pieces, finish);
  }
}

// As above, without a sum.
template <int kLanes, typename Row>
TANDEM_KERNEL EachRowKernel(Grid grid, int64_t rows, Row row) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int64_t n = static_cast<int64_t>(block.x) * (blockDim.x / kLanes) + threadIdx.x / kLanes;
    const bool counts = n < rows;
    row(counts ? n : rows - 1, Lanes<kLanes>{static_cast<int>(threadIdx.x % kLanes)}, counts);
  }
}

template <int kSums, typename Finish>
TANDEM_KERNEL SumRowPiecesKernel(Grid grid, int count, Sums<kSums>* pieces, Finish finish) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    Sums<kSums> sums;
    for (double& sum : sums.of) sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      for (int j = 0; j < kSums; ++j) sums.of[j] += pieces[i].of[j];
    }
    FinishBlock(block, grid, sums, pieces, finish);
  }
}

// Adds up the results of `rows` rows of `width` elements, and calls `finish(Sums)` on a single thread.
// `pieces` is memory of kRowSumBytes. `rows` is at least 1.
template <int kLanes, typename Row, typename Finish>
void SumRowsBy(int64_t rows, int64_t width, const Row& row, void* pieces, const Finish& finish,
               Stream stream) {
  // A single block does a small amount of work, in a single launch.
  constexpr int64_t kLittle = 16384;
  const bool alone = kLanes <= kWarpSize && rows * width <= kLittle;
  int64_t threads = Threads();
  if (alone) {
    threads = (rows * kLanes + kWarpSize - 1) / kWarpSize * kWarpSize;
    if (threads > Threads(1024)) threads = Threads(1024);
  }
  const int64_t groups = threads / kLanes;
  int64_t blocks = alone ? 1 : (rows + groups - 1) / groups;
  if (blocks > kMostRowSums) blocks = kMostRowSums;
  const int64_t rows_of_block = (rows + blocks - 1) / blocks;
  blocks = (rows + rows_of_block - 1) / rows_of_block;
  auto* sums = static_cast<Sums<Row::kSums>*>(pieces);
  Launch(SumRowsKernel<kLanes, Row, Finish>, {static_cast<unsigned>(blocks)}, static_cast<int>(threads),
         stream, rows, rows_of_block, row, sums, finish);
  if (blocks == 1) return;
  Launch(SumRowPiecesKernel<Row::kSums, Finish>, {1}, Threads(), stream, static_cast<int>(blocks), sums,
         finish);
}

// As above, with the number of threads for a row that suits its width.
template <typename Row, typename Finish>
void SumRows(int64_t rows, int64_t width, const Row& row, void* pieces, const Finish& finish, Stream stream) {
  if (width <= 32) {
    SumRowsBy<8>(rows, width, row, pieces, finish, stream);
  } else if (width <= 1024 || Threads() < kThreads) {
    SumRowsBy<32>(rows, width, row, pieces, finish, stream);
  } else {
    SumRowsBy<kThreads>(rows, width, row, pieces, finish, stream);
  }
}

// As above, with a thread for each row.
template <typename Row, typename Finish>
void SumEach(int64_t rows, const Row& row, void* pieces, const Finish& finish, Stream stream) {
  SumRowsBy<1>(rows, 1, row, pieces, finish, stream);
}

template <int kLanes, typename Row>
void EachRowBy(int64_t rows, const Row& row, Stream stream) {
  const int of_block = Threads() / kLanes;
  Launch(EachRowKernel<kLanes, Row>, {static_cast<unsigned>((rows + of_block - 1) / of_block)}, Threads(),
         stream, rows, row);
}

// Calls `row(n, lanes, counts)` for all rows.
template <typename Row>
void EachRow(int64_t rows, int64_t width, const Row& row, Stream stream) {
  if (width <= 32) {
    EachRowBy<8>(rows, row, stream);
  } else if (width <= 1024 || Threads() < kThreads) {
    EachRowBy<32>(rows, row, stream);
  } else {
    EachRowBy<kThreads>(rows, row, stream);
  }
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SUM_ROWS_H_
