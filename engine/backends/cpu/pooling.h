#ifndef TANDEM_ENGINE_BACKENDS_CPU_POOLING_H_
#define TANDEM_ENGINE_BACKENDS_CPU_POOLING_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Pooling keeps the layout of what it is given.
absl::Status LowerMaxPool(Lowering& lowering, const Node& node);
absl::Status LowerMaxPoolGrad(Lowering& lowering, const Node& node);
absl::Status LowerAveragePool(Lowering& lowering, const Node& node);
absl::Status LowerAveragePoolGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_POOLING_H_
