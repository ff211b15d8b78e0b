#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MAP_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MAP_H_

#include <algorithm>
#include <cstdint>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {

// 16 bytes for each thread at a time. Memory of tensors is 256-byte aligned.
template <typename T, typename Function>
TANDEM_KERNEL MapPairsKernel(int64_t elements, const T* a, const T* b, T* y, Function function) {
  constexpr int kCount = 16 / sizeof(T);
  using Items = Pack<T, kCount>;
  const int64_t packs = elements / kCount;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < packs; i += stride) {
    const Items x = reinterpret_cast<const Items*>(a)[i];
    const Items z = reinterpret_cast<const Items*>(b)[i];
    Items result;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      result.items[j] = To<T>(function(ToFloat(x.items[j]), ToFloat(z.items[j])));
    }
    Store(result, reinterpret_cast<Items*>(y) + i);
  }
  const int64_t rest = packs * kCount + first;
  if (rest < elements) y[rest] = To<T>(function(ToFloat(a[rest]), ToFloat(b[rest])));
}

// y[i] = function(a[i], b[i]), computed on floats, in the type T. y may be a or b.
template <typename T, typename Function>
void MapPairs(int64_t elements, const void* a, const void* b, void* y, Function function, Stream stream) {
  if (elements == 0) return;
  const int64_t packs = elements / (16 / static_cast<int64_t>(sizeof(T))) + 1;
  const int threads = Threads();
  const int64_t blocks = std::min<int64_t>((packs + threads - 1) / threads, 1 << 16);
  Launch(MapPairsKernel<T, Function>, WithinLimits({static_cast<unsigned>(blocks)}), threads, stream,
         elements, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y), function);
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MAP_H_
