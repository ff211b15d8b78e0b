#ifndef TANDEM_ENGINE_GRAPH_OPS_SGD_H_
#define TANDEM_ENGINE_GRAPH_OPS_SGD_H_

#include <string>
#include <vector>

#include "engine/graph/ops/update.h"

namespace tandem {

// sgd: stochastic gradient descent with the meaning of torch.optim.SGD (Sutskever et al. 2013 for the
// momenta). With momentum, and only then, there is a buffer:
//   g = grad + weight_decay parameter
//   buffer = g                                      where step is 0, else
//   buffer = momentum buffer + (1 - dampening) g
//   g = nesterov ? g + momentum buffer : buffer
//   parameter -= learning_rate g
// A momentum below 0 is refused, and nesterov without momentum or with dampening.
class SgdOp final : public UpdateOp {
 public:
  SgdOp(double momentum, double dampening, bool nesterov, double weight_decay)
      : momentum(momentum), dampening(dampening), nesterov(nesterov), weight_decay(weight_decay) {}
  absl::string_view kind() const override { return "sgd"; }
  std::string attributes() const override;
  std::vector<OptimizerState> states() const override;

  double momentum;
  double dampening;
  bool nesterov;
  double weight_decay;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_SGD_H_
