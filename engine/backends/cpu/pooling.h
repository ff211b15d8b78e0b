#ifndef TANDEM_ENGINE_BACKENDS_CPU_POOLING_H_
#define TANDEM_ENGINE_BACKENDS_CPU_POOLING_H_

#include <memory>

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// A max_pool2d_grad whose only reader is the gradient of a convolution's weights. That gradient computes it.
struct PooledGrad {
  Region index;
  ValueId dpooled = kNoValue;
  Shape pooled_shape;
  PoolSizes sizes;
};
// Returns the producer of `dy` if it is such a node, else null.
absl::StatusOr<std::unique_ptr<PooledGrad>> FindPooledGrad(Lowering& lowering, ValueId dy);

// Pooling keeps the layout of its input.
absl::Status LowerMaxPool(Lowering& lowering, const Node& node);
absl::Status LowerMaxPoolGrad(Lowering& lowering, const Node& node);
absl::Status LowerAveragePool(Lowering& lowering, const Node& node);
absl::Status LowerAveragePoolGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_POOLING_H_
