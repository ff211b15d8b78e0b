#ifndef TANDEM_ENGINE_GRAPH_OPS_ADAGRAD_H_
#define TANDEM_ENGINE_GRAPH_OPS_ADAGRAD_H_

#include <string>
#include <vector>

#include "engine/graph/ops/update.h"

namespace tandem {

// Weight decay here is L2: g = grad + weight_decay parameter.

// adagrad (Duchi et al. 2011), with the meaning of torch.optim.Adagrad. The sum begins at
// initial_accumulator:
//   sum = sum + g^2
//   parameter -= learning_rate / (1 + (t - 1) lr_decay) g / (sqrt(sum) + epsilon)
struct AdagradSettings {
  double lr_decay = 0;
  double epsilon = 1e-10;
  double weight_decay = 0;
  double initial_accumulator = 0;
};
class AdagradOp final : public UpdateOp {
 public:
  explicit AdagradOp(AdagradSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "adagrad"; }
  std::string attributes() const override;
  std::vector<OptimizerState> states() const override;

  AdagradSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

// adadelta (Zeiler 2012, arXiv:1212.5701), with the meaning of torch.optim.Adadelta:
//   v = rho v + (1 - rho) g^2
//   d = sqrt(a + epsilon) / sqrt(v + epsilon) g
//   a = rho a + (1 - rho) d^2
//   parameter -= learning_rate d
struct AdadeltaSettings {
  double rho = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0;
};
class AdadeltaOp final : public UpdateOp {
 public:
  explicit AdadeltaOp(AdadeltaSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "adadelta"; }
  std::string attributes() const override;
  std::vector<OptimizerState> states() const override;

  AdadeltaSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

// rmsprop (Tieleman and Hinton 2012), with the meaning of torch.optim.RMSprop:
//   v = alpha v + (1 - alpha) g^2
//   d = g / (sqrt(v) + epsilon); centered: with v - mean^2 for v, where mean = alpha mean + (1 - alpha) g
//   parameter -= learning_rate d; with momentum: buffer = momentum buffer + d takes the place of d
struct RmspropSettings {
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};
class RmspropOp final : public UpdateOp {
 public:
  explicit RmspropOp(RmspropSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "rmsprop"; }
  std::string attributes() const override;
  std::vector<OptimizerState> states() const override;

  RmspropSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ADAGRAD_H_
