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

// For an add node: adds the steps of a normalisation that was postponed because the other summand did not
// exist yet. Returns whether there was one.
absl::StatusOr<bool> LowerNormalizedSum(Lowering& lowering, const Node& add);
// For a relu_grad node: adds the steps, together with the sums for a batch_norm_grad that reads the result.
// Returns false, and adds nothing, if no batch_norm_grad reads it.
absl::StatusOr<bool> LowerReluGradSums(Lowering& lowering, const Node& relu_grad);
// For an add node: returns whether LowerReluGradSums of a relu_grad will add it.
bool AddsForReluGradSums(const Lowering& lowering, const Node& add);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_
