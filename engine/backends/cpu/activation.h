#ifndef TANDEM_ENGINE_BACKENDS_CPU_ACTIVATION_H_
#define TANDEM_ENGINE_BACKENDS_CPU_ACTIVATION_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Uses oneDNN, in x's layout. A softplus with non-default constants uses its own loop. A
// SELU is oneDNN's ELU and a scale in place.
absl::Status LowerActivation(Lowering& lowering, const Node& node);
absl::Status LowerActivationGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_ACTIVATION_H_
