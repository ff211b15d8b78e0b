#ifndef TANDEM_ENGINE_BACKENDS_CPU_PAD_H_
#define TANDEM_ENGINE_BACKENDS_CPU_PAD_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Plain or batch-blocked, as x is.
absl::Status LowerPad(Lowering& lowering, const Node& node);
absl::Status LowerCrop(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_PAD_H_
