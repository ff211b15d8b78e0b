#ifndef TANDEM_ENGINE_GRAPH_OPS_LSTM_H_
#define TANDEM_ENGINE_GRAPH_OPS_LSTM_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// lstm(projected [N, L, 4 H], h0 [N, H], c0 [N, H], weight [4 H, H], bias [4 H]) -> y [N, L, H], h_n [N, H],
// c_n [N, H], gates [N, L, 4 H], cells [N, L, H]: a long short-term memory (Hochreiter and Schmidhuber 1997)
// over its projected input. Each position takes h and c of the position before it:
//
//   i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of (projected + weight h + bias)
//   c = f c + i g
//   h = o tanh(c)
//
// y holds every h and cells every c. gates holds i, f, g and o for the gradient. h_n and c_n are h and c
// after the last step. With `reverse` the first step is the last position. gates and cells are not
// differentiable.
class LstmOp final : public Op {
 public:
  explicit LstmOp(bool reverse) : reverse(reverse) {}
  absl::string_view kind() const override { return "lstm"; }
  std::string attributes() const override { return reverse ? "reverse" : ""; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{3, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  bool reverse;
};

// lstm_grad(weight, h0, c0, y, gates, cells, grad_y, grad_h_n, grad_c_n) -> grad_projected [N, L, 4 H],
// grad_h0, grad_c0, before [N, L, H]. `before` holds the h at the start of each step. The gradients of weight
// and bias equal those of a linear layer with input `before` and output gradient grad_projected.
class LstmGradOp final : public Op {
 public:
  explicit LstmGradOp(bool reverse) : reverse(reverse) {}
  absl::string_view kind() const override { return "lstm_grad"; }
  std::string attributes() const override { return reverse ? "reverse" : ""; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 4}, {3, 5}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  bool reverse;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_LSTM_H_
