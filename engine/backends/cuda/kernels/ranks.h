#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RANKS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RANKS_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// Buffers of replicas, in the order of ranks. The GPU must reach all of them.
struct RankBuffers {
  static constexpr int kMost = 16;

  int count = 0;
  void* data[kMost] = {};
};

// Returns whether SumRanks supports this type.
bool CanSumRanks(DType dtype);

// Replaces elements [begin, end) of all buffers by `scale` times their sum, added in the order of ranks.
void SumRanks(const RankBuffers& buffers, DType dtype, int64_t begin, int64_t end, double scale,
              Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_RANKS_H_
