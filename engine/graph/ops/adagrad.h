#ifndef TANDEM_ENGINE_GRAPH_OPS_ADAGRAD_H_
#define TANDEM_ENGINE_GRAPH_OPS_ADAGRAD_H_

#include <string>
#include <vector>

#include "engine/graph/ops/update.h"

namespace tandem {

// All weight decay in this file is L2: g = grad + weight_decay parameter.

// adagrad (Duchi et al. 2011), as torch.optim.Adagrad. The sum starts at initial_accumulator:
//
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
  std::vector<absl::string_view> states() const override;

  AdagradSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

// adadelta (Zeiler 2012, arXiv:1212.5701), as torch.optim.Adadelta:
//
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
  std::vector<absl::string_view> states() const override;

  AdadeltaSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

// rmsprop (Tieleman and Hinton 2012), as torch.optim.RMSprop:
//
//   v = alpha v + (1 - alpha) g^2
//   d = g / (sqrt(v) + epsilon)
//   parameter -= learning_rate d
//
// If `centered`, v - mean^2 replaces v in d, with mean = alpha mean + (1 - alpha) g. With momentum, buffer =
// momentum buffer + d replaces d in the last line.
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
  std::vector<absl::string_view> states() const override;

  RmspropSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ADAGRAD_H_
