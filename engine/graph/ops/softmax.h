#ifndef TANDEM_ENGINE_GRAPH_OPS_SOFTMAX_H_
#define TANDEM_ENGINE_GRAPH_OPS_SOFTMAX_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// softmax(x) -> y = exp(x) / sum of exp(x) along `axis`, with x's shape. With `log`, y is the logarithm.
class SoftmaxOp final : public Op {
 public:
  SoftmaxOp(int axis, bool log) : axis(axis), log(log) {}
  absl::string_view kind() const override { return "softmax"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int axis;  // From 0.
  bool log;
};

// softmax_grad(y, grad_y) -> grad_x. y is softmax's output.
class SoftmaxGradOp final : public Op {
 public:
  SoftmaxGradOp(int axis, bool log) : axis(axis), log(log) {}
  absl::string_view kind() const override { return "softmax_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 1}, {0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int axis;
  bool log;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_SOFTMAX_H_
