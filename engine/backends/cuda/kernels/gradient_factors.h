#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_GRADIENT_FACTORS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_GRADIENT_FACTORS_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"

namespace tandem::cuda {

// See OrthonormalizeOp. x and y are [rows, columns]. A column whose length shrinks to `dependent` of itself
// is replaced. `basis` is memory for rows x columns numbers.
void Orthonormalize(const float* x, int64_t rows, int64_t columns, double dependent, double* basis, float* y,
                    Stream stream);

// See RestoreGradientOp.
struct GradientFactors {
  const float* basis = nullptr;
  const float* other = nullptr;
  int64_t rows = 0;     // Of the gradient.
  int64_t columns = 0;  // Of the gradient.
  int64_t rank = 0;
  bool tall = false;
};
void RestoreGradient(const GradientFactors& factors, float* start, float* grad, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_GRADIENT_FACTORS_H_
