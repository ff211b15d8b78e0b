#ifndef TANDEM_ENGINE_BACKENDS_CPU_LAYER_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LAYER_NORM_H_

#include "absl/status/status.h"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

absl::Status LowerLayerNorm(Lowering& lowering, const Node& node);
absl::Status LowerLayerNormGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LAYER_NORM_H_
