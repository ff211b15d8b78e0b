#ifndef TANDEM_ENGINE_BACKENDS_CPU_CONCAT_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CONCAT_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Plain, or batch-blocked if x is batch-blocked and the axis is not the batch.
absl::Status LowerConcat(Lowering& lowering, const Node& node);
absl::Status LowerSplit(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CONCAT_H_
