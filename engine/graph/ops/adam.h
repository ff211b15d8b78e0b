#ifndef TANDEM_ENGINE_GRAPH_OPS_ADAM_H_
#define TANDEM_ENGINE_GRAPH_OPS_ADAM_H_

#include <string>
#include <vector>

#include "engine/graph/ops/update.h"

namespace tandem {

// The optimizers of this file keep two moments:
//
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//
// They correct the bias towards zero: mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t). L2 weight decay
// sets g = grad + weight_decay parameter. Decoupled weight decay sets g = grad and first subtracts
// learning_rate weight_decay parameter from the parameter (Loshchilov and Hutter 2019, arXiv:1711.05101).

// adam (Kingma and Ba 2015, arXiv:1412.6980), as torch.optim.Adam and AdamW:
//
//   parameter -= learning_rate mhat / (sqrt(vhat) + epsilon)
//
// With amsgrad (Reddi et al. 2018) the largest v so far replaces v.
struct AdamSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  bool amsgrad = false;
};
class AdamOp final : public UpdateOp {
 public:
  explicit AdamOp(AdamSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "adam"; }
  std::string attributes() const override;
  std::vector<absl::string_view> states() const override;

  AdamSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

// nadam (Dozat 2016), as torch.optim.NAdam. mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2). M_t is the
// product of mu_1 to mu_t. Both follow from t alone (nadam_factors.h).
//
//   parameter -= learning_rate (mu_t+1 m / (1 - M_t+1) + (1 - mu_t) g / (1 - M_t)) / (sqrt(vhat) + epsilon)
struct NadamSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  double momentum_decay = 0.004;
};
class NadamOp final : public UpdateOp {
 public:
  explicit NadamOp(NadamSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "nadam"; }
  std::string attributes() const override;
  std::vector<absl::string_view> states() const override;

  NadamSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

// adamax (Kingma and Ba 2015), as torch.optim.Adamax, with L2 weight decay:
//
//   u = max(beta2 u, |g| + epsilon)
//   parameter -= learning_rate mhat / u
struct AdamaxSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};
class AdamaxOp final : public UpdateOp {
 public:
  explicit AdamaxOp(AdamaxSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "adamax"; }
  std::string attributes() const override;
  std::vector<absl::string_view> states() const override;

  AdamaxSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

// lamb (You et al. 2020, arXiv:1904.00962), with g = grad:
//
//   r = mhat / (sqrt(vhat) + epsilon) + weight_decay parameter
//   parameter -= learning_rate |parameter| / |r| r
//
// .| is the 2-norm of the whole tensor. If either norm is 0, the ratio of the norms is 1.
struct LambSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
};
class LambOp final : public UpdateOp {
 public:
  explicit LambOp(LambSettings settings) : settings(settings) {}
  absl::string_view kind() const override { return "lamb"; }
  std::string attributes() const override;
  std::vector<absl::string_view> states() const override;

  LambSettings settings;

 protected:
  std::string Fault() const override;
  double FlopsPerElement() const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ADAM_H_
