#ifndef TANDEM_ENGINE_BACKENDS_CPU_OPTIMIZERS_H_
#define TANDEM_ENGINE_BACKENDS_CPU_OPTIMIZERS_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

absl::Status LowerAdadelta(Lowering& lowering, const Node& node);
absl::Status LowerAdagrad(Lowering& lowering, const Node& node);
absl::Status LowerAdam(Lowering& lowering, const Node& node);
absl::Status LowerAdamax(Lowering& lowering, const Node& node);
absl::Status LowerClipGradients(Lowering& lowering, const Node& node);
absl::Status LowerLamb(Lowering& lowering, const Node& node);
absl::Status LowerLion(Lowering& lowering, const Node& node);
absl::Status LowerNadam(Lowering& lowering, const Node& node);
absl::Status LowerRmsprop(Lowering& lowering, const Node& node);
absl::Status LowerSgd(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_OPTIMIZERS_H_
