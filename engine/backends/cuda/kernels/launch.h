#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_H_

#include <cstddef>
#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/launch_limits.h"

#ifndef __CUDACC__
#include "engine/backends/cuda/kernels/emulated_launch.h"
#endif

// The form of kernels for both nvcc and the emulation:
//
//   template <typename T> TANDEM_KERNEL Double(int64_t n, const T* x, T* y) { ... threadIdx.x ... }
//   Launch(Double<float>, blocks, threads, stream, n, x, y);
//
// __shared__ arrays of static size, __syncthreads, __syncwarp, __shfl_*_sync and atomicAdd work as in CUDA.
// Use ForEach if threads do not cooperate: it is shorter, and faster to emulate.
#define TANDEM_KERNEL __global__ void

namespace tandem::cuda {

// The blocks of a grid that a launched block does, one after the other. Without limits it does a single
// block. A kernel whose first parameter is a Grid gets the whole grid and loops:
//
//   for (BlockLoop block(grid); block.exists(); block.Next()) { ... block.x, block.y, block.z ... }
//
// All threads of a block do all these blocks.
class BlockLoop {
 public:
  __device__ __forceinline__ explicit BlockLoop(const Grid& grid)
      : x(blockIdx.x), y(blockIdx.y), z(blockIdx.z), grid_(grid) {}
  __device__ __forceinline__ bool exists() const { return z < grid_.z; }
  __device__ __forceinline__ void Next() {
    x += gridDim.x;
    if (x >= grid_.x) {
      x = blockIdx.x;
      y += gridDim.y;
    }
    if (y >= grid_.y) {
      y = blockIdx.y;
      z += gridDim.z;
    }
    // The next block uses the shared memory again.
    if (exists()) __syncthreads();
  }

  unsigned x;
  unsigned y;
  unsigned z;

 private:
  const Grid grid_;
};

#ifdef __CUDACC__

template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Parameters...), Grid grid, int threads, Stream stream, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  kernel<<<dim3(grid.x, grid.y, grid.z), threads, 0, stream>>>(static_cast<Parameters>(arguments)...);
}

// For a kernel with a BlockLoop.
template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Grid, Parameters...), Grid grid, int threads, Stream stream,
            Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const Grid part = WithinLimits(grid);
  kernel<<<dim3(part.x, part.y, part.z), threads, 0, stream>>>(grid, static_cast<Parameters>(arguments)...);
}

// Returns the largest shared memory of a block on the thread's device, in bytes.
inline int MostSharedBytes() {
  int device = 0, bytes = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return bytes;
}

// Returns the number of blocks that surely run at the same time, so that they may wait for each other: one
// for each multiprocessor.
inline int BlocksTogether(int multiprocessors) { return multiprocessors; }

// Launches blocks that run at the same time, each with `shared_bytes` of DynamicShared(). It is an error if
// they cannot all run at the same time.
template <typename... Parameters, typename... Arguments>
void LaunchTogether(void (*kernel)(Parameters...), Grid grid, int threads, int shared_bytes, Stream stream,
                    Arguments... arguments) {
  // The limit is one for all threads of the process, so that it has the same value for every launch.
  cudaFuncAttributes own = {};
  cudaFuncGetAttributes(&own, kernel);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       MostSharedBytes() - static_cast<int>(own.sharedSizeBytes));
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &together;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

// Returns the block's memory from LaunchTogether, 16-byte aligned.
__device__ __forceinline__ unsigned char* DynamicShared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  return dynamic_shared;
}

template <typename Function>
TANDEM_KERNEL EachKernel(int64_t n, Function function) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
    function(i);
}

// Calls `function(int64_t i)` for each i below n, in any order: [=] __device__(int64_t i) { ... }.
template <typename Function>
void ForEach(int64_t n, Stream stream, Function function) {
  if (n <= 0) return;
  const int threads = Threads();
  const int64_t blocks = (n + threads - 1) / threads;
  const Grid grid = WithinLimits({static_cast<unsigned>(blocks < (1 << 20) ? blocks : 1 << 20)});
  EachKernel<<<grid.x, threads, 0, stream>>>(n, function);
}

#endif  // __CUDACC__: the emulation's are in emulated_launch.h.

// Returns a one-dimensional grid with this total number of threads.
inline Grid BlocksFor(int64_t threads_in_all, int threads = Threads()) {
  return {static_cast<unsigned>((threads_in_all + threads - 1) / threads)};
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_H_
