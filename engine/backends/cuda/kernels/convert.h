#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CONVERT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CONVERT_H_

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/tensor_changes.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// y = x in another layout, another type, or both. Supported types: equal types of any kind; float32 to and
// from bfloat16 or float16; uint8 to float32, bfloat16 or float16.
void ConvertLayout(const ChannelSizes& sizes, const void* x, DType x_type, bool x_channels_last, void* y,
                   DType y_type, bool y_channels_last, Stream stream);

// A float32 tensor, and the target of its elements in a narrow type. Both are 16-byte aligned.
struct NarrowedTensor {
  const float* source = nullptr;
  void* target = nullptr;
  int64_t elements = 0;
};
// The tensors of a launch, cut into pieces of `piece_size` elements: a block converts a piece. The arrays are
// on the device.
struct NarrowTable {
  const NarrowedTensor* tensors = nullptr;
  const ChangePiece* pieces = nullptr;
  int piece_count = 0;
  int64_t piece_size = 0;
};
// Converts all tensors in a single launch. `type` is bfloat16 or float16.
void NarrowTensors(const NarrowTable& table, DType type, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CONVERT_H_
