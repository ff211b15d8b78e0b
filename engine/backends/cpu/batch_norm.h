#ifndef TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// In whatever layout x has, batch-blocked, channel-blocked or plain.
absl::Status LowerBatchNorm(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormGrad(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormInference(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormInferenceGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_
