#ifndef TANDEM_ENGINE_BACKENDS_CPU_PAD_H_
#define TANDEM_ENGINE_BACKENDS_CPU_PAD_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// In x's layout, plain or batch-blocked.
absl::Status LowerPad(Lowering& lowering, const Node& node);
absl::Status LowerCrop(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_PAD_H_
