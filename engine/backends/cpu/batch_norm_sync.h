#ifndef TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_SYNC_H_
#define TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_SYNC_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// In plain layout.
absl::Status LowerBatchNormMoments(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormSync(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormRunning(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormSums(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormSyncGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_SYNC_H_
