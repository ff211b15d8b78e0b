#ifndef TANDEM_ENGINE_BACKENDS_CPU_DROPOUT_H_
#define TANDEM_ENGINE_BACKENDS_CPU_DROPOUT_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// In x's layout, plain or batch-blocked.
absl::Status LowerDropout(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_DROPOUT_H_
