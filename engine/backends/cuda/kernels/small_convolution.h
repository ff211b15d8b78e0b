#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SMALL_CONVOLUTION_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SMALL_CONVOLUTION_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/patches.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// Convolutions of few taps (kernel_h * kernel_w * c), such as those of the first layer of a network for
// images. All sums are float32. Tensors have their channels last and are of `type`: float32, bfloat16 or
// float16.
struct SmallConvolution {
  PatchSizes sizes;  // Without its width.
  int64_t filters = 0;
  DType type = DType::kFloat32;
  int multiprocessors = 1;  // Of the GPU: work is divided among as many.
};

// Whether the kernels of this header take it.
bool IsSmall(const SmallConvolution& convolution);

// y [n, out_h, out_w, filters] = x * weight [filters, kernel_h, kernel_w, c], plus bias [filters] unless it
// is null; of which the ReLU may be taken.
void ConvolveSmall(const SmallConvolution& convolution, const void* x, const void* weight, const float* bias,
                   bool relu, void* y, Stream stream);

// The pieces in which the gradient of the weights is summed.
int64_t GradWeightPieces(const SmallConvolution& convolution);
// Writes each piece's gradient of the weights to `partials` [pieces, filters, kernel_h, kernel_w, c].
void GradWeightSmall(const SmallConvolution& convolution, const void* x, const void* dy, float* partials,
                     Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_SMALL_CONVOLUTION_H_
