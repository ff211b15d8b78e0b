#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_POOLING_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_POOLING_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/image.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

struct PoolSizes {
  ImageSizes x;  // The input of the pooling.
  int out_height = 0;
  int out_width = 0;
  int window_height = 1;
  int window_width = 1;
  int stride_height = 1;
  int stride_width = 1;
  int padding_height = 0;
  int padding_width = 0;
  bool count_padding = false;  // For averages: padding counts in the divisor.
  // y and dy are plain although x has channels last. An index has the layout of x.
  bool plain_y = false;

  ImageSizes y() const { return {x.outer, out_height, out_width, x.lanes}; }
};

// x, y, dx and dy have `type`: float32, bfloat16 or float16. The ops (graph/ops/pooling.h) define the
// results.
void MaxPool(const PoolSizes& sizes, DType type, const void* x, void* y, uint8_t* index, Stream stream);
void MaxPoolGrad(const PoolSizes& sizes, DType type, const uint8_t* index, const void* dy, void* dx,
                 Stream stream);
void AveragePool(const PoolSizes& sizes, DType type, const void* x, void* y, Stream stream);
void AveragePoolGrad(const PoolSizes& sizes, DType type, const void* dy, void* dx, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_POOLING_H_
