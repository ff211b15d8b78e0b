#include "engine/backends/cuda/kernels/embedding.h"

#include <limits>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {
namespace {

template <typename T>
void RunGather(int64_t count, int64_t rows, int64_t width, const int32_t* indices, const float* weight, T* y,
               Stream stream) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  ForEach(count * width, stream, [=] __device__(int64_t i) {
    const int64_t token = i / width;
    const int64_t row = indices[token];
    y[i] = To<T>(row >= 0 && row < rows ? weight[row * width + (i - token * width)] : kNaN);
  });
}

// A block has a place i in `indices`. If it is the first place of its row, the block finds all other places
// of the row and adds them up in order. So no two blocks have the same row.
template <typename T>
TANDEM_KERNEL GatherGradKernel(Grid grid, int64_t count, int64_t rows, int64_t width, int64_t padding_index,
                               const int32_t* indices, const T* grad_y, float* grad_weight) {
  __shared__ uint32_t votes[kThreads / kWarpSize];
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int64_t place = block.x;
    const int32_t row = indices[place];
    if (row < 0 || row >= rows || row == padding_index) continue;
    int before = 0;
    for (int64_t i = threadIdx.x; i < place; i += blockDim.x) before += indices[i] == row ? 1 : 0;
    if (ReduceBlock(before, 0, Sum()) != 0) continue;
    float* sum = grad_weight + row * width;
    for (int64_t first = place; first < count; first += blockDim.x) {
      const int64_t i = first + threadIdx.x;
      const uint32_t vote = __ballot_sync(0xffffffffu, i < count && indices[i] == row);
      if (threadIdx.x % kWarpSize == 0) votes[threadIdx.x / kWarpSize] = vote;
      __syncthreads();
      for (int warp = 0; warp < static_cast<int>(blockDim.x) / kWarpSize; ++warp) {
        for (uint32_t rest = votes[warp]; rest != 0; rest &= rest - 1) {
          const int lane = __ffs(static_cast<int>(rest)) - 1;
          const T* grad = grad_y + (first + warp * kWarpSize + lane) * width;
          for (int64_t d = threadIdx.x; d < width; d += blockDim.x) sum[d] += ToFloat(grad[d]);
        }
      }
      __syncthreads();
    }
  }
}

template <typename T>
void RunAddToEach(int64_t samples, int64_t columns, const T* x, const float* each, T* y, Stream stream) {
  ForEach(samples * columns, stream,
          [=] __device__(int64_t i) { y[i] = To<T>(ToFloat(x[i]) + each[i % columns]); });
}

template <typename T>
void RunSumOfEach(int64_t samples, int64_t columns, const T* x, float* sum, Stream stream) {
  ForEach(columns, stream, [=] __device__(int64_t i) {
    float total = 0;
    for (int64_t n = 0; n < samples; ++n) total += ToFloat(x[n * columns + i]);
    sum[i] = total;
  });
}

}  // namespace

void GatherRows(int64_t count, int64_t rows, int64_t width, const int32_t* indices, const float* weight,
                DType type, void* y, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    RunGather(count, rows, width, indices, weight, static_cast<T*>(y), stream);
  });
}

void GatherRowsGrad(int64_t count, int64_t rows, int64_t width, int64_t padding_index, const int32_t* indices,
                    DType type, const void* grad_y, float* grad_weight, Stream stream) {
  ForEach(rows * width, stream, [=] __device__(int64_t i) { grad_weight[i] = 0; });
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    Launch(GatherGradKernel<T>, {static_cast<unsigned>(count)}, Threads(), stream, count, rows, width,
           padding_index, indices, static_cast<const T*>(grad_y), grad_weight);
  });
}

void AddToEach(int64_t samples, int64_t columns, DType type, const void* x, const float* each, void* y,
               Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    RunAddToEach(samples, columns, static_cast<const T*>(x), each, static_cast<T*>(y), stream);
  });
}

void SumOfEach(int64_t samples, int64_t columns, DType type, const void* x, float* sum, Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    RunSumOfEach(samples, columns, static_cast<const T*>(x), sum, stream);
  });
}

}  // namespace tandem::cuda
