#include "engine/graph/ops/moving_average.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string MovingAverageOp::attributes() const { return absl::StrCat("decay=", decay); }

absl::StatusOr<std::vector<TensorType>> MovingAverageOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 4));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  if (inputs[0].shape != inputs[1].shape) {
    return InputError(*this, inputs, "the average must have the value's shape");
  }
  TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, kStepInput, {DType::kInt64, Shape()}, "the step"));
  if (inputs.size() > kApplyInput) {
    TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, kApplyInput, {DType::kFloat64, Shape()}, "apply"));
  }
  if (!(decay >= 0 && decay < 1)) {
    return InputError(*this, inputs, absl::StrCat("decay is ", decay, ", not in [0, 1)"));
  }
  return std::vector<TensorType>{};
}

OpCost MovingAverageOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 3, inputs);
}

}  // namespace tandem
