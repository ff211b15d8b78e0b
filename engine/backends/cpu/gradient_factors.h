#ifndef TANDEM_ENGINE_BACKENDS_CPU_GRADIENT_FACTORS_H_
#define TANDEM_ENGINE_BACKENDS_CPU_GRADIENT_FACTORS_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Their results have the same bits on all x86-64 processors, so that replicas on unlike processors stay
// equal. Therefore their loops are not compiled for each instruction set.
absl::Status LowerOrthonormalize(Lowering& lowering, const Node& node);
absl::Status LowerRestoreGradient(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_GRADIENT_FACTORS_H_
