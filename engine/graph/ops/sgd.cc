#include "engine/graph/ops/sgd.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string SgdOp::attributes() const {
  return absl::StrCat("momentum=", momentum, " dampening=", dampening, " weight_decay=", weight_decay,
                      nesterov ? " nesterov" : "");
}

absl::StatusOr<std::vector<TensorType>> SgdOp::Infer(absl::Span<const TensorType> inputs) const {
  if (!(momentum >= 0)) return InputError(*this, inputs, absl::StrCat("momentum is ", momentum));
  if (nesterov && (momentum == 0 || dampening != 0)) {
    return InputError(*this, inputs, "nesterov needs a momentum and a dampening of 0");
  }
  const size_t count = momentum == 0 ? 4 : 5;
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, count, count));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  if (inputs[1].shape != inputs[0].shape) {
    return InputError(*this, inputs, "the gradient must have the parameter's shape");
  }
  if (inputs[2] != TensorType{DType::kFloat64, Shape()}) {
    return InputError(*this, inputs, "the learning rate must be float64[]");
  }
  if (inputs[3] != TensorType{DType::kInt64, Shape()}) {
    return InputError(*this, inputs, "the step must be int64[]");
  }
  if (momentum != 0 && inputs[4] != inputs[0]) {
    return InputError(*this, inputs, "the buffer must have the parameter's type and shape");
  }
  return std::vector<TensorType>{};
}

std::vector<int> SgdOp::MutatedInputs() const {
  return momentum == 0 ? std::vector<int>{0} : std::vector<int>{0, 4};
}

OpCost SgdOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  const double elements = inputs[0].shape.elements();
  cost.flops = elements * (2 + (weight_decay != 0 ? 2 : 0) + (momentum != 0 ? 3 : 0) + (nesterov ? 2 : 0));
  return cost;
}

}  // namespace tandem
