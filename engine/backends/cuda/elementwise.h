#ifndef TANDEM_ENGINE_BACKENDS_CUDA_ELEMENTWISE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_ELEMENTWISE_H_

#include <cstdint>
#include <functional>

#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Computes y[i] from a[i] and b[i], all of `type`: float32, bfloat16 or float16. y may be a or b.
using PairsKernel =
    std::function<void(int64_t elements, DType type, const void* a, const void* b, void* y, Stream stream)>;

// Computes output 0 from input 0 and, if it exists, input 1 (else b is a), in the layout of the first. It
// uses a narrow type if all tensors have it.
absl::Status LowerPairs(Lowering& lowering, const Node& node, const PairsKernel& kernel);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_ELEMENTWISE_H_
