#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROWS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROWS_H_

#include <array>
#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"

namespace tandem::cuda {

// Rows of bytes in up to three dimensions, with the strides of source and target along each dimension.
struct RowCopy {
  int64_t row_bytes = 0;
  std::array<int64_t, 3> extents = {1, 1, 1};
  std::array<int64_t, 3> x_strides = {0, 0, 0};  // In bytes.
  std::array<int64_t, 3> y_strides = {0, 0, 0};
};

// Copies all rows. x and y are any device memory that does not overlap.
void CopyRows(const RowCopy& copy, const void* x, void* y, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROWS_H_
