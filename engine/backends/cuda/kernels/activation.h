#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ACTIVATION_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ACTIVATION_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// A function of an element with its constants, as in graph/ops/activation.h.
struct ActivationCurve {
  enum class Kind : uint8_t {
    kLeakyRelu,
    kElu,
    kGelu,
    kGeluTanh,
    kSigmoid,
    kTanh,
    kSilu,
    kSoftplus,
    kHardSwish,
    kSelu,
  };
  Kind kind = Kind::kTanh;
  float alpha = 1;
  float threshold = 20;
};

// y[i] = curve(x[i]), of `type`: float32, bfloat16 or float16. y may be x.
void Activate(const ActivationCurve& curve, int64_t elements, DType type, const void* x, void* y,
              Stream stream);
// dx[i] = curve'(x[i]) dy[i]. dx may be x or dy.
void ActivateGrad(const ActivationCurve& curve, int64_t elements, DType type, const void* x, const void* dy,
                  void* dx, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_ACTIVATION_H_
