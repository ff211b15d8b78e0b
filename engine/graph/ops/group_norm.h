#ifndef TANDEM_ENGINE_GRAPH_OPS_GROUP_NORM_H_
#define TANDEM_ENGINE_GRAPH_OPS_GROUP_NORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Group normalisation (Wu and He 2018) over x [N, C, ...]. The channels form `groups` groups of neighbours.
// Each group of each sample is normalised separately.

// group_norm(x, weight [C], bias [C]) -> y, mean [N, groups], inv_std [N, groups]:
//
//   y = weight (x - mean) inv_std + bias
//
// inv_std = 1 / sqrt(variance + epsilon), with the biased variance.
class GroupNormOp final : public Op {
 public:
  GroupNormOp(int64_t groups, double epsilon) : groups(groups), epsilon(epsilon) {}
  absl::string_view kind() const override { return "group_norm"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int64_t groups;
  double epsilon;
};

// group_norm_grad(x, grad_y, weight [C], mean [N, groups], inv_std [N, groups]) -> grad_x, grad_weight [C],
// grad_bias [C]. mean and inv_std are outputs of group_norm.
class GroupNormGradOp final : public Op {
 public:
  explicit GroupNormGradOp(int64_t groups) : groups(groups) {}
  absl::string_view kind() const override { return "group_norm_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int64_t groups;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_GROUP_NORM_H_
