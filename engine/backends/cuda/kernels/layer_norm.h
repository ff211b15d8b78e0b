#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAYER_NORM_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/channel_rows.h"

namespace tandem::cuda {

// Each row of x [rows, channels] by itself: y = (x - mean) / sqrt(variance + epsilon) weight + bias, of the
// type of x, which y may be. mean, variance [rows].
void LayerNorm(const ChannelRows& sizes, const void* x, const float* weight, const float* bias, float epsilon,
               void* y, float* mean, float* variance, Stream stream);

// The gradients, with what LayerNorm gave; dx may be x or dy.
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
