#ifndef TANDEM_ENGINE_GRAPH_OPS_LION_H_
#define TANDEM_ENGINE_GRAPH_OPS_LION_H_

#include <string>
#include <vector>

#include "engine/graph/ops/update.h"

namespace tandem {

// lion (Chen et al. 2023, arXiv:2302.06675):
//   parameter -= learning_rate (sign(beta1 m + (1 - beta1) grad) + weight_decay parameter)
//   m = beta2 m + (1 - beta2) grad
struct LionSettings {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
};
class LionOp final : public UpdateOp {
 public:
  explicit LionOp(LionSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "lion"; }
  std::string attributes() const override;
  std::vector<absl::string_view> states() const override;

  LionSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_LION_H_
