#ifndef TANDEM_ENGINE_BACKENDS_CPU_GROUP_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_GROUP_NORM_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// In plain layout.
absl::Status LowerGroupNorm(Lowering& lowering, const Node& node);
absl::Status LowerGroupNormGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_GROUP_NORM_H_
