#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_GROUP_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_GROUP_NORM_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/channel_rows.h"

namespace tandem::cuda {

// A tensor with channels last, [samples, positions, channels]. The channels form groups.
struct GroupSizes {
  int64_t samples = 0;
  int64_t positions = 0;
  int64_t channels = 0;
  int64_t groups = 1;
  DType type = DType::kFloat32;  // Or bfloat16, or float16.
};
// Returns the bytes of the scratch: sums of each sample's channels and groups.
int64_t GroupScratchBytes(const GroupSizes& sizes);

// Normalises each group of each sample separately: y = weight (x - mean) inv_std + bias with inv_std = 1 /
// sqrt(variance + epsilon). mean and inv_std are [samples, groups]. y may be x.
void GroupNorm(const GroupSizes& sizes, const void* x, const float* weight, const float* bias, double epsilon,
               float* scratch, void* y, float* mean, float* inv_std, Stream stream);

// The inputs of the gradients. mean and inv_std are results of GroupNorm. dx may be x or dy.
struct GroupNormGradIn {
  const void* x = nullptr;
  const void* dy = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;
  const float* inv_std = nullptr;
};
void GroupNormGrad(const GroupSizes& sizes, const GroupNormGradIn& in, float* scratch, void* dx,
                   float* dweight, float* dbias, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_GROUP_NORM_H_
