#ifndef TANDEM_ENGINE_GRAPH_OPS_ELEMENTWISE_H_
#define TANDEM_ENGINE_GRAPH_OPS_ELEMENTWISE_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// relu(x) -> y = max(x, 0), with x's shape. NaN stays NaN.
class ReluOp final : public Op {
 public:
  absl::string_view kind() const override { return "relu"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
};

// relu_grad(y, grad_y) -> grad_x = 0 if y <= 0, else grad_y. y is relu's output.
class ReluGradOp final : public Op {
 public:
  absl::string_view kind() const override { return "relu_grad"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 1}, {0, 0}}; }
};

// add(a, b) -> a + b, all with the same shape.
class AddOp final : public Op {
 public:
  absl::string_view kind() const override { return "add"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}, {0, 1}}; }
};

// multiply(a, b) -> a b, element by element, all with the same shape.
class MultiplyOp final : public Op {
 public:
  absl::string_view kind() const override { return "multiply"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}, {0, 1}}; }
};

// scale(x) -> factor x.
class ScaleOp final : public Op {
 public:
  explicit ScaleOp(double factor) : factor(factor) {}
  absl::string_view kind() const override { return "scale"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }

  double factor;
};

// divide(x, divisor []) -> factor x / divisor, element by element; 0 if the divisor is 0. Both inputs have
// one floating-point type. Not differentiable.
class DivideOp final : public Op {
 public:
  explicit DivideOp(double factor) : factor(factor) {}
  absl::string_view kind() const override { return "divide"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }

  double factor;  // Finite.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ELEMENTWISE_H_
