#include "engine/graph/ops/adagrad.h"

#include "absl/strings/str_cat.h"

namespace tandem {

std::string AdagradOp::attributes() const {
  return absl::StrCat("lr_decay=", settings.lr_decay, " epsilon=", settings.epsilon,
                      " weight_decay=", settings.weight_decay,
                      " initial_accumulator=", settings.initial_accumulator);
}

std::vector<absl::string_view> AdagradOp::states() const { return {"sum_of_squares"}; }

std::string AdagradOp::Fault() const {
  return FirstFault({FaultOfNonNegative("lr_decay", settings.lr_decay), FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay),
                     FaultOfNonNegative("initial_accumulator", settings.initial_accumulator)});
}

double AdagradOp::FlopsPerElement() const { return 6 + (settings.weight_decay != 0 ? 2 : 0); }

std::string AdadeltaOp::attributes() const {
  return absl::StrCat("rho=", settings.rho, " epsilon=", settings.epsilon,
                      " weight_decay=", settings.weight_decay);
}

std::vector<absl::string_view> AdadeltaOp::states() const { return {"mean_square", "mean_square_step"}; }

std::string AdadeltaOp::Fault() const {
  return FirstFault({FaultOfShare("rho", settings.rho), FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay)});
}

double AdadeltaOp::FlopsPerElement() const { return 14 + (settings.weight_decay != 0 ? 2 : 0); }

std::string RmspropOp::attributes() const {
  return absl::StrCat("alpha=", settings.alpha, " epsilon=", settings.epsilon,
                      " weight_decay=", settings.weight_decay, " momentum=", settings.momentum,
                      settings.centered ? " centered" : "");
}

std::vector<absl::string_view> RmspropOp::states() const {
  std::vector<absl::string_view> kept = {"mean_square"};
  if (settings.centered) kept.push_back("mean");
  if (settings.momentum != 0) kept.push_back("momentum");
  return kept;
}

std::string RmspropOp::Fault() const {
  return FirstFault({FaultOfShare("alpha", settings.alpha), FaultOfEpsilon(settings.epsilon),
                     FaultOfNonNegative("weight_decay", settings.weight_decay),
                     FaultOfShare("momentum", settings.momentum)});
}

double RmspropOp::FlopsPerElement() const {
  return 8 + (settings.weight_decay != 0 ? 2 : 0) + (settings.momentum != 0 ? 2 : 0) +
         (settings.centered ? 5 : 0);
}

}  // namespace tandem
