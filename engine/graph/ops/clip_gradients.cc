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
  if (count < 1) {
    return InputError(*this, inputs, absl::StrCat("count is ", count, ", but must be at least 1"));
  }
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, count, count));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, inputs.size() - 1));
  if (!(limit > 0 && std::isfinite(limit))) {
    return InputError(*this, inputs, absl::StrCat("the limit is ", limit, ", but must be above 0"));
  }
  return std::vector<TensorType>(inputs.begin(), inputs.end());
}

std::vector<std::pair<int, int>> ClipGradientsOp::InPlace() const {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < count; ++i) pairs.emplace_back(i, i);
  return pairs;
}

OpCost ClipGradientsOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  // By norm: a square, a sum and a product. By value: two comparisons.
  cost.flops *= mode == Mode::kByNorm ? 3 : 2;
  return cost;
}

}  // namespace tandem
