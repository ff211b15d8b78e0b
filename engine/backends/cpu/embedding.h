#ifndef TANDEM_ENGINE_BACKENDS_CPU_EMBEDDING_H_
#define TANDEM_ENGINE_BACKENDS_CPU_EMBEDDING_H_

#include "absl/status/status.h"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Embeddings of tokens and of positions.
absl::Status LowerGatherRows(Lowering& lowering, const Node& node);
absl::Status LowerGatherRowsGrad(Lowering& lowering, const Node& node);
absl::Status LowerAddToEach(Lowering& lowering, const Node& node);
absl::Status LowerSumOfEach(Lowering& lowering, const Node& node);
absl::Status LowerAddSinusoids(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_EMBEDDING_H_
