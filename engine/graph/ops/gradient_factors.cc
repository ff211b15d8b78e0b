#include "engine/graph/ops/gradient_factors.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

absl::StatusOr<std::vector<TensorType>> OrthonormalizeOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 2));
  if (inputs[0].shape[1] > inputs[0].shape[0]) {
    return InputError(*this, inputs, "the matrix has more columns than rows");
  }
  return std::vector<TensorType>{inputs[0]};
}

OpCost OrthonormalizeOp::Cost(absl::Span<const TensorType> inputs,
                              absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  // Two passes. In each, a column has a product with each earlier column, and loses a multiple of it.
  const auto columns = static_cast<double>(inputs[0].shape[1]);
  cost.flops = 4 * static_cast<double>(inputs[0].shape[0]) * columns * columns;
  return cost;
}

std::string RestoreGradientOp::attributes() const {
  return absl::StrCat("share=", share, tall ? " tall" : "");
}

absl::StatusOr<std::vector<TensorType>> RestoreGradientOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 4, 4));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 3));
  for (size_t i = 0; i < inputs.size(); ++i) TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, i, 2));
  if (!std::isfinite(share)) return InputError(*this, inputs, absl::StrCat("share is ", share));
  const Shape& error = inputs[kError].shape;
  const int64_t rank = inputs[kBasis].shape[1];
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, kBasis, Shape({error[tall ? 1 : 0], rank})));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, kOther, Shape({error[tall ? 0 : 1], rank})));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, kStart, inputs[kOther].shape));
  return std::vector<TensorType>{inputs[kError]};
}

OpCost RestoreGradientOp::Cost(absl::Span<const TensorType> inputs,
                               absl::Span<const TensorType> outputs) const {
  const auto rank = static_cast<double>(inputs[kBasis].shape[1]);
  return WithFlops(Op::Cost(inputs, outputs), 2 * rank + 2, outputs);
}

}  // namespace tandem
