#ifndef TANDEM_ENGINE_BACKENDS_CPU_SOFTMAX_H_
#define TANDEM_ENGINE_BACKENDS_CPU_SOFTMAX_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// In plain layout.
absl::Status LowerSoftmax(Lowering& lowering, const Node& node);
absl::Status LowerSoftmaxGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_SOFTMAX_H_
