#ifndef TANDEM_ENGINE_BACKENDS_CUDA_ELEMENTWISE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_ELEMENTWISE_H_

#include <cstdint>
#include <functional>

#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Computes y[i] from a[i] and b[i], all of `type`: float32, bfloat16 or float16. y may be a or b.
using PairsKernel =
    std::function<void(int64_t elements, DType type, const void* a, const void* b, void* y, Stream stream)>;

// Adds the step of an element-wise op with one or two inputs, by `kernel`. The output has the layout of input
// 0. Without a second input, `kernel` gets input 0 as b. The kernel's type is the inputs' type if both agree,
// else float32.
absl::Status LowerPairs(Lowering& lowering, const Node& node, const PairsKernel& kernel);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_ELEMENTWISE_H_
