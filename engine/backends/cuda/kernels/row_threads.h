#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_THREADS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_THREADS_H_

#include <cstdint>
#include <type_traits>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {

inline constexpr int kRowThreads = 256;  // The most threads of a block.

// The threads that share a row of a matrix: a warp, or a block if rows are long.
template <bool kWholeBlock>
struct RowThreads {
  __device__ RowThreads(const BlockLoop& block, int64_t rows)
      : index(kWholeBlock ? threadIdx.x : threadIdx.x % kWarpSize),
        count(kWholeBlock ? static_cast<int>(blockDim.x) : kWarpSize),
        row(kWholeBlock ? static_cast<int64_t>(block.x)
                        : static_cast<int64_t>(block.x) * (blockDim.x / kWarpSize) + threadIdx.x / kWarpSize),
        exists(row < rows) {}

  template <typename Combine>
  __device__ float Reduce(float value, float identity, Combine combine) const {
    return kWholeBlock ? ReduceBlock(value, identity, combine) : ReduceWarp(value, combine);
  }

  int index;  // Of the thread.
  int count;  // Of the row's threads.
  int64_t row;
  bool exists;  // Of the row. Equal in all of its threads.
};

// Calls `function(whole block, grid)` with a std::bool_constant that suits rows of this length. Blocks must
// have Threads(kRowThreads).
template <typename Function>
void WithRowThreads(int64_t rows, int64_t elements, const Function& function) {
  const int64_t of_block = Threads(kRowThreads) / kWarpSize;
  if (elements > 1024) {
    function(std::true_type(), Grid{static_cast<unsigned>(rows)});
  } else {
    function(std::false_type(), Grid{static_cast<unsigned>((rows + of_block - 1) / of_block)});
  }
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROW_THREADS_H_
