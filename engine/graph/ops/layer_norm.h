#ifndef TANDEM_ENGINE_GRAPH_OPS_LAYER_NORM_H_
#define TANDEM_ENGINE_GRAPH_OPS_LAYER_NORM_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// layer_norm(x [rows..., normalized...], weight [normalized...], bias [normalized...]) -> y, mean [rows...],
// variance [rows...] (biased), with y of x's shape (Ba, Kiros and Hinton 2016):
//
//   y = (x - mean) / sqrt(variance + epsilon) weight + bias
//
// Each row is normalised separately over its last `dimensions` dimensions. Mean and variance are float64 for
// float64, else float32, and not differentiable.
class LayerNormOp final : public Op {
 public:
  LayerNormOp(int dimensions, double epsilon) : dimensions(dimensions), epsilon(epsilon) {}
  absl::string_view kind() const override { return "layer_norm"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int dimensions;
  double epsilon;
};

// layer_norm_grad(x, grad_y, weight, mean, variance) -> grad_x, grad_weight, grad_bias.
class LayerNormGradOp final : public Op {
 public:
  LayerNormGradOp(int dimensions, double epsilon) : dimensions(dimensions), epsilon(epsilon) {}
  absl::string_view kind() const override { return "layer_norm_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int dimensions;
  double epsilon;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_LAYER_NORM_H_
