#ifndef TANDEM_ENGINE_GRAPH_OPS_CLASSIFICATION_H_
#define TANDEM_ENGINE_GRAPH_OPS_CLASSIFICATION_H_

#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// softmax_cross_entropy(logits [N, C], labels int32 [N]) -> loss [], probabilities [N, C]. The loss is the
// mean over the batch of -log softmax(logits)[label]; it is float64 for float64 logits, else float32. Labels
// lie in [0, C): the host checks them. Only the loss is differentiable.
class SoftmaxCrossEntropyOp final : public Op {
 public:
  absl::string_view kind() const override { return "softmax_cross_entropy"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{1, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// softmax_cross_entropy_grad(probabilities [N, C], labels int32 [N], grad_loss []) -> grad_logits [N, C] =
// grad_loss (probabilities - one_hot(labels)) / N.
class SoftmaxCrossEntropyGradOp final : public Op {
 public:
  absl::string_view kind() const override { return "softmax_cross_entropy_grad"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
};

// count_correct(logits [N, C], labels int32 [N]) -> [], of the loss's type: the number of samples whose
// largest logit (of equal ones the first; a NaN counts as the largest) is the label's. Not differentiable.
class CountCorrectOp final : public Op {
 public:
  absl::string_view kind() const override { return "count_correct"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CLASSIFICATION_H_
