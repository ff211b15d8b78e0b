#ifndef TANDEM_ENGINE_GRAPH_OPS_SGD_H_
#define TANDEM_ENGINE_GRAPH_OPS_SGD_H_

#include <string>
#include <vector>

#include "engine/graph/ops/update.h"

namespace tandem {

// sgd: stochastic gradient descent, as torch.optim.SGD (Sutskever et al. 2013 for the momenta). The buffer
// exists only with momentum:
//
//   g = grad + weight_decay parameter
//   buffer = step == 0 ? g : momentum buffer + (1 - dampening) g
//   g = nesterov ? g + momentum buffer : buffer
//   parameter -= learning_rate g
//
// INVALID_ARGUMENT if momentum is below 0, or for nesterov without momentum or with dampening.
class SgdOp final : public UpdateOp {
 public:
  SgdOp(double momentum, double dampening, bool nesterov, double weight_decay)
      : momentum(momentum), dampening(dampening), nesterov(nesterov), weight_decay(weight_decay) {}
  absl::string_view kind() const override { return "sgd"; }
  std::string attributes() const override;
  std::vector<absl::string_view> states() const override;

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
