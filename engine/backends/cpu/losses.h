#ifndef TANDEM_ENGINE_BACKENDS_CPU_LOSSES_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LOSSES_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

absl::Status LowerClassLoss(Lowering& lowering, const Node& node);
absl::Status LowerClassLossGrad(Lowering& lowering, const Node& node);
absl::Status LowerValueLoss(Lowering& lowering, const Node& node);
absl::Status LowerValueLossGrad(Lowering& lowering, const Node& node);
absl::Status LowerCosineEmbedding(Lowering& lowering, const Node& node);
absl::Status LowerCosineEmbeddingGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LOSSES_H_
