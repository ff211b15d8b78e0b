#include "engine/graph/ops/adam.h"

#include "absl/strings/str_cat.h"

namespace tandem {

std::string AdamOp::attributes() const {
  return absl::StrCat("beta1=", settings.beta1, " beta2=", settings.beta2, " epsilon=", settings.epsilon,
                      " weight_decay=", settings.weight_decay, settings.decoupled ? " decoupled" : "",
                      settings.amsgrad ? " amsgrad" : "");
}

std::vector<absl::string_view> AdamOp::states() const {
  if (settings.amsgrad) return {"first_moment", "second_moment", "largest_second_moment"};
  return {"first_moment", "second_moment"};
}

std::string AdamOp::Fault() const {
  return FirstFault({FaultOfShare("beta1", settings.beta1), FaultOfShare("beta2", settings.beta2),
                     FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay)});
}

double AdamOp::FlopsPerElement() const {
  return 12 + (settings.weight_decay != 0 ? 2 : 0) + (settings.amsgrad ? 1 : 0);
}

std::string NadamOp::attributes() const {
  return absl::StrCat("beta1=", settings.beta1, " beta2=", settings.beta2, " epsilon=", settings.epsilon,
                      " weight_decay=", settings.weight_decay, " momentum_decay=", settings.momentum_decay,
                      settings.decoupled ? " decoupled" : "");
}

std::vector<absl::string_view> NadamOp::states() const { return {"first_moment", "second_moment"}; }

std::string NadamOp::Fault() const {
  return FirstFault({FaultOfShare("beta1", settings.beta1), FaultOfShare("beta2", settings.beta2),
                     FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay),
                     FaultOfNonNegative("momentum_decay", settings.momentum_decay)});
}

double NadamOp::FlopsPerElement() const { return 14 + (settings.weight_decay != 0 ? 2 : 0); }

std::string AdamaxOp::attributes() const {
  return absl::StrCat("beta1=", settings.beta1, " beta2=", settings.beta2, " epsilon=", settings.epsilon,
                      " weight_decay=", settings.weight_decay);
}

std::vector<absl::string_view> AdamaxOp::states() const { return {"first_moment", "infinity_norm"}; }

std::string AdamaxOp::Fault() const {
  return FirstFault({FaultOfShare("beta1", settings.beta1), FaultOfShare("beta2", settings.beta2),
                     FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay)});
}

double AdamaxOp::FlopsPerElement() const { return 9 + (settings.weight_decay != 0 ? 2 : 0); }

std::string LambOp::attributes() const {
  return absl::StrCat("beta1=", settings.beta1, " beta2=", settings.beta2, " epsilon=", settings.epsilon,
                      " weight_decay=", settings.weight_decay);
}

std::vector<absl::string_view> LambOp::states() const { return {"first_moment", "second_moment"}; }

std::string LambOp::Fault() const {
  return FirstFault({FaultOfShare("beta1", settings.beta1), FaultOfShare("beta2", settings.beta2),
                     FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay)});
}

double LambOp::FlopsPerElement() const { return 20 + (settings.weight_decay != 0 ? 4 : 0); }

}  // namespace tandem
