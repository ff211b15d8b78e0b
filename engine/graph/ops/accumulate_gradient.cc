#include "engine/graph/ops/accumulate_gradient.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string AccumulateGradientOp::attributes() const {
  return absl::StrCat("scale=", scale, overwrite ? " overwrite" : "");
}

absl::StatusOr<std::vector<TensorType>> AccumulateGradientOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  if (inputs[0].shape != inputs[1].shape) {
    return InputError(*this, inputs, "the sum must have the gradient's shape");
  }
  if (!std::isfinite(scale)) return InputError(*this, inputs, absl::StrCat("scale is ", scale));
  return std::vector<TensorType>{};
}

OpCost AccumulateGradientOp::Cost(absl::Span<const TensorType> inputs,
                                  absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 2, inputs);
}

}  // namespace tandem
