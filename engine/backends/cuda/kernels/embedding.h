#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMBEDDING_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// `type` is float32, bfloat16 or float16. Tensors are plain.

// y [count, width] of `type`: row indices[i] of weight [rows, width]. NaN if there is no such row, because a
// kernel cannot return an error.
void GatherRows(int64_t count, int64_t rows, int64_t width, const int32_t* indices, const float* weight,
                DType type, void* y, Stream stream);
// grad_weight [rows, width]: row r is the sum of grad_y [count, width] at all indices r, in order. Row
// `padding_index` is zero. Invalid indices are ignored.
void GatherRowsGrad(int64_t count, int64_t rows, int64_t width, int64_t padding_index, const int32_t* indices,
                    DType type, const void* grad_y, float* grad_weight, Stream stream);

// y [samples, columns] = x with `each` [columns] added to each sample. y may be x.
void AddToEach(int64_t samples, int64_t columns, DType type, const void* x, const float* each, void* y,
               Stream stream);
// sum [columns] = the sum of x [samples, columns] over the samples.
void SumOfEach(int64_t samples, int64_t columns, DType type, const void* x, float* sum, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMBEDDING_H_
