#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ELEMENTWISE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ELEMENTWISE_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// y[i] from a[i] and b[i], all of `type`: float32, bfloat16 or float16. y may be a or b.
enum class Elementwise : uint8_t {
  kRelu,      // a if it is not below 0, else 0. NaN stays NaN.
  kReluGrad,  // b if a, the ReLU's output, is above 0 or NaN, else 0.
  kAdd,
  kMultiply,
  kScale,  // factor * a.
};
void RunElementwise(Elementwise what, int64_t elements, DType type, const void* a, const void* b,
                    float factor, void* y, Stream stream);

// y[i] = factor * x[i] / *divisor, of `type`. 0 if the divisor is 0. y may be x.
void DivideByNumber(int64_t elements, DType type, const void* x, float factor, const float* divisor, void* y,
                    Stream stream);

// *y = factor * *x.
void ScaleNumber(const double* x, double factor, double* y, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ELEMENTWISE_H_
