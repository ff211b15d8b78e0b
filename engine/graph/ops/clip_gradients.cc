#include "engine/graph/ops/clip_gradients.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string ClipGradientsOp::attributes() const {
  return absl::StrCat(mode == Mode::kByNorm ? "norm=" : "value=", limit);
}

absl::StatusOr<std::vector<TensorType>> ClipGradientsOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckGradients(*this, inputs, count));
  if (!(limit > 0 && std::isfinite(limit))) {
    return InputError(*this, inputs, absl::StrCat("the limit is ", limit, ", but must be above 0"));
  }
  return std::vector<TensorType>(inputs.begin(), inputs.end());
}

std::vector<std::pair<int, int>> ClipGradientsOp::InPlace() const { return PairsInPlace(0, 0, count); }

OpCost ClipGradientsOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  // By norm: a square, a sum and a product. By value: two comparisons.
  cost.flops *= mode == Mode::kByNorm ? 3 : 2;
  return cost;
}

}  // namespace tandem
