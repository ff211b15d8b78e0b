#include "engine/graph/ops/normalize.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string NormalizeOp::attributes() const {
  return absl::StrCat("scale=", scale, " mean=[", absl::StrJoin(mean, ", "), "] std=[",
                      absl::StrJoin(std, ", "), "] dtype=", tandem::ToString(dtype));
}

absl::StatusOr<std::vector<TensorType>> NormalizeOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  const TensorType& x = inputs[0];
  if (!IsFloatingPoint(x.dtype) && x.dtype != DType::kUInt8) {
    return InputError(*this, inputs, "the input must be of a floating-point type or uint8");
  }
  if (!IsFloatingPoint(dtype))
    return InputError(*this, inputs, "the result must be of a floating-point type");
  for (const std::vector<double>* numbers : {&mean, &std}) {
    const bool fits =
        numbers->size() == 1 || (x.shape.rank() >= 2 && numbers->size() == static_cast<size_t>(x.shape[1]));
    if (!fits) {
      return InputError(*this, inputs,
                        absl::StrCat(numbers == &mean ? "mean" : "std", " has ", numbers->size(),
                                     " numbers, but needs one or one for each channel"));
    }
  }
  for (const double deviation : std) {
    if (deviation == 0 || !std::isfinite(deviation)) {
      return InputError(*this, inputs, absl::StrCat("std has ", deviation, ", but must be finite and not 0"));
    }
  }
  return std::vector<TensorType>{{dtype, x.shape}};
}

OpCost NormalizeOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 2, inputs);
}

}  // namespace tandem
