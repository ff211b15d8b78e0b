#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_POOLING_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_POOLING_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/image.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

struct PoolSizes {
  ImageSizes x;  // What is pooled.
  int out_height = 0;
  int out_width = 0;
  int window_height = 1;
  int window_width = 1;
  int stride_height = 1;
  int stride_width = 1;
  int padding_height = 0;
  int padding_width = 0;
  bool count_padding = false;  // Of averages: padding counts in the divisor.
  // y and dy lie plain although x's channels are last. An index lies as x.
  bool plain_y = false;

  ImageSizes y() const { return {x.outer, out_height, out_width, x.lanes}; }
};

// x, y, dx and dy are of `type`, float32, bfloat16 or float16. Semantics are those of the ops
// (graph/ops/pooling.h).
void MaxPool(const PoolSizes& sizes, DType type, const void* x, void* y, uint8_t* index, Stream stream);
void MaxPoolGrad(const PoolSizes& sizes, DType type, const uint8_t* index, const void* dy, void* dx,
                 Stream stream);
void AveragePool(const PoolSizes& sizes, DType type, const void* x, void* y, Stream stream);
void AveragePoolGrad(const PoolSizes& sizes, DType type, const void* dy, void* dx, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_POOLING_H_
