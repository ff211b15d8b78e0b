#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NORMALIZE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NORMALIZE_H_

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// How a tensor is normalised: y = factor x + offset, both of the channel. Floats, which may be far from zero
// beside their deviation, are normalised in double precision.
struct Normalization {
  ChannelSizes sizes;
  bool x_channels_last = false;  // Then y's are too.
  bool y_channels_last = false;
  bool by_channel = false;  // Else the first pair is for all channels.
  // On the device: factor, offset. Bytes use `byte_pairs`, numbers `pairs`.
  const float* byte_pairs = nullptr;
  const double* pairs = nullptr;
};

// x is uint8 or a number, y a number: float32, bfloat16 or float16.
void Normalize(const Normalization& how, DType x_type, const void* x, DType y_type, void* y, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_NORMALIZE_H_
