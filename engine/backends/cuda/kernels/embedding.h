#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMBEDDING_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// `type` is float32, bfloat16 or float16; tensors are plain.

// y [count, width] of `type`: row indices[i] of weight [rows, width]; NaN where there is no such row, since a
// kernel cannot fail by itself.
void GatherRows(int64_t count, int64_t rows, int64_t width, const int32_t* indices, const float* weight,
                DType type, void* y, Stream stream);
// grad_weight [rows, width]: row r is the sum of grad_y [count, width] where the index is r, in their order;
// zero for `padding_index`. Indices of no row are left out.
void GatherRowsGrad(int64_t count, int64_t rows, int64_t width, int64_t padding_index, const int32_t* indices,
                    DType type, const void* grad_y, float* grad_weight, Stream stream);

// y [samples, columns] = x with `each` [columns] added to each sample. y may be x.
void AddToEach(int64_t samples, int64_t columns, DType type, const void* x, const float* each, void* y,
               Stream stream);
// sum [columns] of x [samples, columns] over the samples.
void SumOfEach(int64_t samples, int64_t columns, DType type, const void* x, float* sum, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMBEDDING_H_
