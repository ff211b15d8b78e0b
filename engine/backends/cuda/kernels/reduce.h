#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_REDUCE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_REDUCE_H_

#include "engine/backends/cuda/kernels/launch.h"

namespace tandem::cuda {

inline constexpr int kWarpSize = 32;

struct Sum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Maximum {  // NaN if any operand is NaN.
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

// Reduces over the lanes of a warp. All lanes must call it, and all get the result.
template <typename Combine, typename T>
__device__ __forceinline__ T ReduceWarp(T value, Combine combine) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  return value;
}

// Reduces over the threads of a one-dimensional block: a multiple of 32, at most 1024. All threads must call
// it, and all get the result. `identity` changes nothing when combined.
template <typename Combine, typename T>
__device__ __forceinline__ T ReduceBlock(T value, T identity, Combine combine) {
  __shared__ T of_warps[kWarpSize];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int warps = blockDim.x / kWarpSize;
  value = ReduceWarp(value, combine);
  __syncthreads();  // An earlier reduction may still be read.
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  value = lane < warps ? of_warps[lane] : identity;
  return ReduceWarp(value, combine);
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_REDUCE_H_
