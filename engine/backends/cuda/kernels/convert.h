#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CONVERT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CONVERT_H_

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/layout.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// y = x in another layout, another type, or both. Types: equal ones of any kind, or float32, bfloat16 and
// uint8 (which is not converted to).
void ConvertLayout(const ChannelSizes& sizes, const void* x, DType x_type, bool x_channels_last, void* y,
                   DType y_type, bool y_channels_last, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CONVERT_H_
