#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_H_

#include <cstddef>
#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/launch_limits.h"

#ifndef __CUDACC__
#include "engine/backends/cuda/kernels/emulated_launch.h"
#endif

// How kernels are written so that both nvcc and the emulation take them:
//   template <typename T> TANDEM_KERNEL Double(int64_t n, const T* x, T* y) { ... threadIdx.x ... }
//   Launch(Double<float>, blocks, threads, stream, n, x, y);
// Statically sized __shared__ arrays, __syncthreads, __syncwarp, __shfl_*_sync and atomicAdd work as in CUDA.
// What every thread computes for itself, with neither, is shorter, and faster to emulate, as ForEach.
#define TANDEM_KERNEL __global__ void

namespace tandem::cuda {

// The blocks of a grid that one block of its launch does, one after the other: where launches are not
// limited, its own alone. A kernel whose first parameter is a Grid is given the whole one, and goes
//   for (BlockLoop block(grid); block.exists(); block.Next()) { ... block.x, block.y, block.z ... }
// All threads of a block go through all of them.
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
    // What the block shares is used again.
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

// Of a kernel with a BlockLoop.
template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Grid, Parameters...), Grid grid, int threads, Stream stream,
            Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const Grid part = WithinLimits(grid);
  kernel<<<dim3(part.x, part.y, part.z), threads, 0, stream>>>(grid, static_cast<Parameters>(arguments)...);
}

// The most shared memory of a block of the thread's device, in bytes.
inline int MostSharedBytes() {
  int device = 0, bytes = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return bytes;
}

// Of a launch whose blocks run at the same time, so that they may wait for each other: at most one for each
// of so many multiprocessors.
inline int BlocksTogether(int multiprocessors) { return multiprocessors; }

// Launches blocks that run at the same time, and gives each so many bytes of DynamicShared(). More blocks
// than can run at the same time are an error of the launch.
template <typename... Parameters, typename... Arguments>
void LaunchTogether(void (*kernel)(Parameters...), Grid grid, int threads, int shared_bytes, Stream stream,
                    Arguments... arguments) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
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

// The block's memory from LaunchTogether, 16-byte aligned.
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

// Of a one-dimensional grid with so many threads in all.
inline Grid BlocksFor(int64_t threads_in_all, int threads = Threads()) {
  return {static_cast<unsigned>((threads_in_all + threads - 1) / threads)};
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_H_
