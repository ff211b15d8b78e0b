#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_ROWS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_ROWS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// Tensors with channels last: [rows, channels] of `type`: float32, bfloat16 or float16. Rows are the
// positions of all samples.
struct ChannelRows {
  int64_t rows = 0;
  int64_t channels = 0;
  DType type = DType::kFloat32;
  int multiprocessors = 1;  // The work is divided among so many multiprocessors.
};

// The scratch of sums over rows. Blocks add up pieces of the rows. The last block to end adds up the pieces,
// always in the same order.
struct SumScratch {
  float* partials = nullptr;  // PartialBytes.
  // TicketBytes: 0 before the first kernel. Used by the kernels of a single step.
  unsigned* tickets = nullptr;
};
int64_t PartialBytes(const ChannelRows& sizes);
int64_t TicketBytes(const ChannelRows& sizes);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANNEL_ROWS_H_
