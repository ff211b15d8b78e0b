#include "engine/graph/ops/gradient_factors.h"

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

std::string RestoreGradientOp::attributes() const { return tall ? "tall" : ""; }

absl::StatusOr<std::vector<TensorType>> RestoreGradientOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 2));
  for (size_t i = 0; i < inputs.size(); ++i) TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, i, 2));
  const Shape& basis = inputs[kBasis].shape;
  const Shape& other = inputs[kOther].shape;
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, kOther, Shape({other[0], basis[1]})));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, kStart, other));
  return std::vector<TensorType>{
      {inputs[kBasis].dtype, tall ? Shape({other[0], basis[0]}) : Shape({basis[0], other[0]})}};
}

OpCost RestoreGradientOp::Cost(absl::Span<const TensorType> inputs,
                               absl::Span<const TensorType> outputs) const {
  const auto rank = static_cast<double>(inputs[kBasis].shape[1]);
  return WithFlops(Op::Cost(inputs, outputs), 2 * rank, outputs);
}

}  // namespace tandem
