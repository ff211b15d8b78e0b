#include "engine/graph/ops/accumulate.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string AccumulateOp::attributes() const {
  return absl::StrCat("weights=[", absl::StrJoin(weights, ", "), "]");
}

absl::StatusOr<std::vector<TensorType>> AccumulateOp::Infer(absl::Span<const TensorType> inputs) const {
  const size_t count = weights.size();
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, count + 1, count + 1));
  const TensorType meter = {DType::kFloat64, Shape({static_cast<int64_t>(count)})};
  TANDEM_RETURN_IF_ERROR(CheckType(*this, inputs, 0, meter, "the meter"));
  for (size_t i = 1; i < inputs.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, i, i));
    TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, i, 0));
  }
  return std::vector<TensorType>{};
}

}  // namespace tandem
