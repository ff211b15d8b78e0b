#ifndef TANDEM_ENGINE_GRAPH_OPS_SGD_H_
#define TANDEM_ENGINE_GRAPH_OPS_SGD_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// sgd(parameter, grad, learning_rate float64 [], step int64 [][, buffer]), no outputs: one step of stochastic
// gradient descent with the meaning of torch.optim.SGD (Sutskever et al. 2013 for the momenta). `step` counts
// the steps taken before this one. With momentum there is a buffer of the parameter's shape:
//   g = grad + weight_decay parameter
//   buffer = g                                      where step is 0, else
//   buffer = momentum buffer + (1 - dampening) g
//   g = nesterov ? g + momentum buffer : buffer
//   parameter -= learning_rate g
// Parameter and buffer are variables, which the op changes in place. Not differentiable.
class SgdOp final : public Op {
 public:
  SgdOp(double momentum, double dampening, bool nesterov, double weight_decay)
      : momentum(momentum), dampening(dampening), nesterov(nesterov), weight_decay(weight_decay) {}
  absl::string_view kind() const override { return "sgd"; }
  std::string attributes() const override;
  // INVALID_ARGUMENT too for a momentum below 0, and for nesterov without momentum or with dampening. The
  // buffer is there exactly when the momentum is not 0.
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double momentum;
  double dampening;
  bool nesterov;
  double weight_decay;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_SGD_H_
