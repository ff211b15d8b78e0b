#include "engine/graph/ops/sgd.h"

#include "absl/strings/str_cat.h"

namespace tandem {

std::string SgdOp::attributes() const {
  return absl::StrCat("momentum=", momentum, " dampening=", dampening, " weight_decay=", weight_decay,
                      nesterov ? " nesterov" : "");
}

std::vector<absl::string_view> SgdOp::states() const {
  if (momentum == 0) return {};
  return {"momentum"};
}

std::string SgdOp::Fault() const {
  if (nesterov && (momentum == 0 || dampening != 0)) {
    return "nesterov needs a momentum and a dampening of 0";
  }
  return FirstFault({FaultOfNonNegative("momentum", momentum), FaultOfNonNegative("dampening", dampening),
                     FaultOfNonNegative("weight_decay", weight_decay)});
}

double SgdOp::FlopsPerElement() const {
  return 2 + (weight_decay != 0 ? 2 : 0) + (momentum != 0 ? 3 : 0) + (nesterov ? 2 : 0);
}

}  // namespace tandem
