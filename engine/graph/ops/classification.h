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
// the mean of -log softmax(logits)[label] over the rows, as float64 for float64 logits, else float32. Labels
// are in [0, C), which the host checks. Only the loss is differentiable. class_loss.h has weights, smoothed
// targets and mixed targets.
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

// count_correct(scores [..., C], target) -> [], with the loss's type: the number of rows whose class is among
// the k best scores. Larger scores are better. Of equal scores the first is better. NaN is better than every
// number. The target is int32 [...], or floating-point [..., C]. In the second case the class is the largest
// element, the first of equal elements. Rows of the class `ignore_index` do not count. Not differentiable.
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

// count_labels(labels int32 [...]) -> float32 []: the number of labels other than `ignore_index`. Not
// differentiable.
class CountLabelsOp final : public Op {
 public:
  explicit CountLabelsOp(int64_t ignore_index) : ignore_index(ignore_index) {}
  absl::string_view kind() const override { return "count_labels"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;

  int64_t ignore_index;
};

// count_sides(x, target) -> [], with the loss's type: the number of elements on the same side, so x > 0
// equals target > 0.5. An element with a NaN does not count. The target has x's shape and any floating-point
// type, or is int32 [n] for x [n, 1]. Not differentiable.
class CountSidesOp final : public Op {
 public:
  absl::string_view kind() const override { return "count_sides"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CLASSIFICATION_H_
