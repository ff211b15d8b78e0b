#ifndef TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_H_
#define TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Batch normalisation (Ioffe and Szegedy 2015) over x [N, C, ...]. Each channel is normalised over all
// samples and positions.

// batch_norm(x, weight [C], bias [C], running_mean [C], running_var [C]) -> y, mean [C], inv_std [C]:
//
//   y = weight (x - mean) inv_std + bias
//
// mean is the batch's mean. inv_std = 1 / sqrt(variance + epsilon), with the biased variance. The op changes
// the running statistics, variables, in place: (1 - momentum) old + momentum new. Their new variance is the
// unbiased variance. INVALID_ARGUMENT if a channel has a single value, because its unbiased variance is
// undefined.
class BatchNormOp final : public Op {
 public:
  BatchNormOp(double momentum, double epsilon) : momentum(momentum), epsilon(epsilon) {}
  absl::string_view kind() const override { return "batch_norm"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<int> MutatedInputs() const override { return {3, 4}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double momentum;
  double epsilon;
};

// batch_norm_grad(x, grad_y, weight [C], mean [C], inv_std [C]) -> grad_x, grad_weight [C], grad_bias [C].
// mean and inv_std are outputs of batch_norm. grad_x includes their dependence on x.
class BatchNormGradOp final : public Op {
 public:
  absl::string_view kind() const override { return "batch_norm_grad"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// batch_norm_inference(x, weight [C], bias [C], running_mean [C], running_var [C]) -> y: normalises with the
// running statistics and does not change them.
class BatchNormInferenceOp final : public Op {
 public:
  explicit BatchNormInferenceOp(double epsilon) : epsilon(epsilon) {}
  absl::string_view kind() const override { return "batch_norm_inference"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double epsilon;
};

// batch_norm_inference_grad(x, grad_y, weight [C], running_mean [C], running_var [C]) -> grad_x, grad_weight
// [C], grad_bias [C]. The statistics are constants.
class BatchNormInferenceGradOp final : public Op {
 public:
  explicit BatchNormInferenceGradOp(double epsilon) : epsilon(epsilon) {}
  absl::string_view kind() const override { return "batch_norm_inference_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double epsilon;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_BATCH_NORM_H_
