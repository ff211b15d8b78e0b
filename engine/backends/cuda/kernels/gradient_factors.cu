#include "engine/backends/cuda/kernels/gradient_factors.h"

#include <cmath>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/reduce.h"
#include "engine/graph/ops/orthonormal_sign.h"

namespace tandem::cuda {
namespace {

// Returns the product of two columns. All threads of the block must call it, and all get the result.
__device__ __forceinline__ double Product(const double* a, const double* b, int64_t rows) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += a[i] * b[i];
  return ReduceBlock(sum, 0.0, Sum());
}

// Makes the column `k` of `basis` orthogonal to the columns before it, and of length 1. Columns are
// contiguous. Returns false if it depends on them. Each thread always uses the same rows.
__device__ __forceinline__ bool MakeOrthonormal(double* basis, int64_t k, int64_t rows, double dependent) {
  double* const column = basis + k * rows;
  const double length = sqrt(Product(column, column, rows));
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t j = 0; j < k; ++j) {
      const double* const earlier = basis + j * rows;
      const double part = Product(column, earlier, rows);
      for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) column[i] -= part * earlier[i];
    }
  }
  const double left = sqrt(Product(column, column, rows));
  if (left <= dependent * length) return false;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) column[i] /= left;
  return true;
}

// A single block: a column needs all columns before it.
TANDEM_KERNEL OrthonormalizeKernel(int64_t rows, int64_t columns, double dependent, const float* x,
                                   double* basis, float* y) {
  for (int64_t k = 0; k < columns; ++k) {
    double* const column = basis + k * rows;
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) column[i] = x[i * columns + k];
    if (!MakeOrthonormal(basis, k, rows, dependent)) {
      for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) column[i] = OrthonormalSign(i, k);
      if (!MakeOrthonormal(basis, k, rows, dependent)) {
        for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) column[i] = 0;
      }
    }
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
      y[i * columns + k] = static_cast<float>(column[i]);
  }
}

}  // namespace

void Orthonormalize(const float* x, int64_t rows, int64_t columns, double dependent, double* basis, float* y,
                    Stream stream) {
  Launch(OrthonormalizeKernel, Grid{1}, Threads(), stream, rows, columns, dependent, x, basis, y);
}

void RestoreGradient(const GradientFactors& factors, float* start, float* grad, Stream stream) {
  ForEach(factors.rows * factors.columns, stream, [=] __device__(int64_t i) {
    const int64_t row = i / factors.columns;
    const int64_t column = i - row * factors.columns;
    const float* const left = (factors.tall ? factors.other : factors.basis) + row * factors.rank;
    const float* const right = (factors.tall ? factors.basis : factors.other) + column * factors.rank;
    float sum = 0;
    for (int64_t k = 0; k < factors.rank; ++k) sum += left[k] * right[k];
    grad[i] = sum;
  });
  const int64_t numbers = (factors.tall ? factors.rows : factors.columns) * factors.rank;
  ForEach(numbers, stream, [=] __device__(int64_t i) { start[i] = factors.other[i]; });
}

}  // namespace tandem::cuda
