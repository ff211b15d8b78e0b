#ifndef TANDEM_ENGINE_GRAPH_OPS_ATTENTION_H_
#define TANDEM_ENGINE_GRAPH_OPS_ATTENTION_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// attention_softmax(scores [..., queries, keys]) -> weights [..., queries, keys]: softmax(scale scores) over
// the keys of each query (Vaswani et al. 2017). If `causal`, query q sees keys 0 to q, and the other weights
// are 0.
class AttentionSoftmaxOp final : public Op {
 public:
  AttentionSoftmaxOp(double scale, bool causal) : scale(scale), causal(causal) {}
  absl::string_view kind() const override { return "attention_softmax"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double scale;
  bool causal;
};

// attention_softmax_grad(weights, grad_weights) -> grad_scores.
class AttentionSoftmaxGradOp final : public Op {
 public:
  AttentionSoftmaxGradOp(double scale, bool causal) : scale(scale), causal(causal) {}
  absl::string_view kind() const override { return "attention_softmax_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 1}, {0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double scale;
  bool causal;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ATTENTION_H_
