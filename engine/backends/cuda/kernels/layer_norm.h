#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/channel_rows.h"

namespace tandem::cuda {

// Normalises each row of x [rows, channels] separately: y = (x - mean) / sqrt(variance + epsilon) weight +
// bias. y has x's type and may be x. mean and variance are [rows].
void LayerNorm(const ChannelRows& sizes, const void* x, const float* weight, const float* bias, float epsilon,
               void* y, float* mean, float* variance, Stream stream);

// The inputs of the gradients. mean and variance are results of LayerNorm. dx may be x or dy.
struct LayerNormGradIn {
  const void* x = nullptr;
  const void* dy = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  float epsilon = 0;
};
void LayerNormGrad(const ChannelRows& sizes, const LayerNormGradIn& in, const SumScratch& scratch, void* dx,
                   float* dweight, float* dbias, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_
