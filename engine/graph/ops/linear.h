#ifndef TANDEM_ENGINE_GRAPH_OPS_LINEAR_H_
#define TANDEM_ENGINE_GRAPH_OPS_LINEAR_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// linear(x [..., F], weight [O, F][, bias [O]]) -> y [..., O] = x weight^T + bias. x has at least one leading
// dimension.
class LinearOp final : public Op {
 public:
  absl::string_view kind() const override { return "linear"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// linear_grad_input(grad_y [..., O], weight [O, F]) -> grad_x [..., F].
class LinearGradInputOp final : public Op {
 public:
  absl::string_view kind() const override { return "linear_grad_input"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// linear_grad_weight(x [..., F], grad_y [..., O]) -> grad_weight [O, F][, grad_bias [O] if has_bias].
class LinearGradWeightOp final : public Op {
 public:
  explicit LinearGradWeightOp(bool has_bias) : has_bias(has_bias) {}
  absl::string_view kind() const override { return "linear_grad_weight"; }
  std::string attributes() const override { return has_bias ? "has_bias" : ""; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  bool has_bias;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_LINEAR_H_
