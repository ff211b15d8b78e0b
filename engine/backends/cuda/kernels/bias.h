#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BIAS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BIAS_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// y = x + bias[c], of which the ReLU may be taken; x and y, float32, bfloat16 or float16, lie alike and may
// be the same memory. Without a bias (null) only the ReLU is taken.
void AddChannelBias(const ChannelSizes& sizes, bool channels_last, DType type, const void* x,
                    const float* bias, bool relu, void* y, Stream stream);

// Bytes of memory that SumChannels works in; 0: none.
int64_t SumChannelsBytes(const ChannelSizes& sizes, bool channels_last);
// sums[c] = the sum of x over samples and positions, in float and in an order that depends on the sizes
// alone; x is float32, bfloat16 or float16.
void SumChannels(const ChannelSizes& sizes, bool channels_last, DType type, const void* x, float* workspace,
                 float* sums, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BIAS_H_
