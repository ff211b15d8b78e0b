#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NORMALIZE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NORMALIZE_H_

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// A normalisation: y = factor x + offset, with a pair (factor, offset) for each channel or for all channels.
// Bytes use float32 pairs. Floats use float64 pairs, because floats may be far from zero compared with their
// deviation.
struct Normalization {
  ChannelSizes sizes;
  bool x_channels_last = false;  // Then y also has channels last.
  bool y_channels_last = false;
  bool by_channel = false;  // False: the first pair is for all channels.
  // The pairs, on the device: `byte_pairs` if x is uint8, else `pairs`.
  const float* byte_pairs = nullptr;
  const double* pairs = nullptr;
};

// x is uint8, float32, bfloat16 or float16. y is float32, bfloat16 or float16.
void Normalize(const Normalization& how, DType x_type, const void* x, DType y_type, void* y, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NORMALIZE_H_
