#ifndef TANDEM_ENGINE_BACKENDS_CPU_ELEMENTWISE_H_
#define TANDEM_ENGINE_BACKENDS_CPU_ELEMENTWISE_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Loops over elements, in the layout of the inputs.
absl::Status LowerRelu(Lowering& lowering, const Node& node);
absl::Status LowerReluGrad(Lowering& lowering, const Node& node);
absl::Status LowerAdd(Lowering& lowering, const Node& node);
absl::Status LowerMultiply(Lowering& lowering, const Node& node);
absl::Status LowerScale(Lowering& lowering, const Node& node);
absl::Status LowerDivide(Lowering& lowering, const Node& node);

absl::Status LowerReshape(Lowering& lowering, const Node& node);
absl::Status LowerNormalize(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_ELEMENTWISE_H_
