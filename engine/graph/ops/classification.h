#ifndef TANDEM_ENGINE_GRAPH_OPS_CLASSIFICATION_H_
#define TANDEM_ENGINE_GRAPH_OPS_CLASSIFICATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// softmax_cross_entropy(logits [..., C], labels int32 [...]) -> loss [], probabilities [..., C]. The loss is
// the mean over the rows of -log softmax(logits)[label]; it is float64 for float64 logits, else float32.
// Labels lie in [0, C): the host checks them. Only the loss is differentiable. See class_loss.h for weights,
// smoothed and mixed targets.
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

// softmax_cross_entropy_grad(probabilities [..., C], labels int32 [...], grad_loss []) -> grad_logits [...,
// C] = grad_loss (probabilities - one_hot(labels)) / rows.
class SoftmaxCrossEntropyGradOp final : public Op {
 public:
  absl::string_view kind() const override { return "softmax_cross_entropy_grad"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
};

// count_correct(scores [..., C], target) -> [], of the loss's type: the number of rows in which fewer than k
// scores come before that of the row's class, where larger scores come first, of equal ones the first, and a
// NaN before every number. The target is int32 [...], classes, or of floating-point numbers [..., C], whose
// largest (of equal ones the first) is the class. Rows of the class `ignore_index` do not count. Not
// differentiable.
class CountCorrectOp final : public Op {
 public:
  explicit CountCorrectOp(int64_t k = 1, std::optional<int64_t> ignore_index = std::nullopt)
      : k(k), ignore_index(ignore_index) {}
  absl::string_view kind() const override { return "count_correct"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;

  int64_t k;  // At least 1.
  std::optional<int64_t> ignore_index;
};

// count_labels(labels int32 [...]) -> float32 []: how many are not `ignore_index`. Not differentiable.
class CountLabelsOp final : public Op {
 public:
  explicit CountLabelsOp(int64_t ignore_index) : ignore_index(ignore_index) {}
  absl::string_view kind() const override { return "count_labels"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;

  int64_t ignore_index;
};

// count_sides(x, target) -> [], of the loss's type: the number of elements for which x > 0 and target > 0.5
// are both so or both not; a NaN is on neither side. The target is of x's shape and of any floating-point
// type, or int32 [n] for x [n, 1]. Not differentiable.
class CountSidesOp final : public Op {
 public:
  absl::string_view kind() const override { return "count_sides"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CLASSIFICATION_H_
