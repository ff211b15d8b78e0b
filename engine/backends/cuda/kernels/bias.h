#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BIAS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BIAS_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// y = x + bias[c], then the ReLU if `relu`. x and y, float32, bfloat16 or float16, have the same layout and
// may be the same memory. Without a bias (null), only the ReLU is applied.
void AddChannelBias(const ChannelSizes& sizes, bool channels_last, DType type, const void* x,
                    const float* bias, bool relu, void* y, Stream stream);

// Returns the bytes of SumChannels's workspace. May be 0.
int64_t SumChannelsBytes(const ChannelSizes& sizes, bool channels_last);
// sums[c] = the sum of x over samples and positions, in float and in an order that depends on the sizes
// alone. x is float32, bfloat16 or float16.
void SumChannels(const ChannelSizes& sizes, bool channels_last, DType type, const void* x, float* workspace,
                 float* sums, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BIAS_H_
