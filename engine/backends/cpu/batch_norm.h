#ifndef TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Batch normalisation in its input's layout, float32 or bfloat16. In a residual network, the ops after it run
// in the same passes over memory. Forward these are the sum with the shortcut and the ReLU. Backward they are
// the ReLU's gradient and the sum of the gradients that meet there.
absl::Status LowerBatchNorm(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormGrad(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormInference(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormInferenceGrad(Lowering& lowering, const Node& node);

// Adds the steps of the group's relu_grad and of its sum, together with the sums for its batch_norm_grad.
absl::Status LowerReluGradSums(Lowering& lowering, const BackwardGroup& group);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_
