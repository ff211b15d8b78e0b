#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROWS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROWS_H_

#include <array>
#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"

namespace tandem::cuda {

// Rows of bytes that stand in up to three dimensions, and from each row to the next along each of them in
// what they are copied from and to.
struct RowCopy {
  int64_t row_bytes = 0;
  std::array<int64_t, 3> extents = {1, 1, 1};
  std::array<int64_t, 3> x_strides = {0, 0, 0};  // Bytes.
  std::array<int64_t, 3> y_strides = {0, 0, 0};
};

void CopyRows(const RowCopy& copy, const void* x, void* y, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ROWS_H_
