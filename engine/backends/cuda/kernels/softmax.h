#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SOFTMAX_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SOFTMAX_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// Lines of a tensor. The elements of a line are `stride` apart. If that is above 1, they alternate with the
// elements of `stride` - 1 other lines.
struct SoftmaxLines {
  int64_t count = 0;
  int64_t extent = 0;
  int64_t stride = 1;
  DType type = DType::kFloat32;  // Or bfloat16, or float16.
};

// The softmax of each line.
struct SoftmaxKind {
  bool log = false;
  float scale = 1;  // The factor of x.
  int64_t queries =
      0;  // If not 0, of line l only the first l % queries + 1 elements count; the others become 0.
};

// y = softmax(scale x), or its logarithm. y may be x. Only lines with stride 1 may have a scale or queries.
void Softmax(const SoftmaxLines& lines, const SoftmaxKind& kind, const void* x, void* y, Stream stream);
// dx may be y or dy.
void SoftmaxGrad(const SoftmaxLines& lines, const SoftmaxKind& kind, const void* y, const void* dy, void* dx,
                 Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SOFTMAX_H_
