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
struct Maximum {  // NaN where there is one.
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

// Over the lanes of a warp, all of which take part; all get the result.
template <typename Combine, typename T>
__device__ __forceinline__ T ReduceWarp(T value, Combine combine) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  return value;
}

// Over the threads of a one-dimensional block, all of which take part, a multiple of 32 and at most 1024; all
// get the result. `identity` changes nothing that it is combined with.
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
