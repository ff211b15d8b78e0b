#ifndef TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Batch normalisation in whatever layout its input has, float32 or bfloat16. What follows it in a residual
// network is done in the same passes over memory: the sum with the shortcut and the ReLU; and in the backward
// pass the ReLU's gradient, and the sum of the gradients that arrive there.
absl::Status LowerBatchNorm(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormGrad(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormInference(Lowering& lowering, const Node& node);
absl::Status LowerBatchNormInferenceGrad(Lowering& lowering, const Node& node);

// Of an add node: adds the steps of a normalisation that was left for it, whose sum with a value that was not
// there yet it is. Returns whether there was one.
absl::StatusOr<bool> LowerNormalizedSum(Lowering& lowering, const Node& add);
// Of a relu_grad node: adds the steps, with sums that a batch_norm_grad that reads the result needs. Returns
// whether there is such.
absl::StatusOr<bool> LowerReluGradSums(Lowering& lowering, const Node& relu_grad);
// Of an add node: whether it is left to a relu_grad, of which LowerReluGradSums takes care.
bool AddsForReluGradSums(const Lowering& lowering, const Node& add);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_BATCH_NORM_H_
