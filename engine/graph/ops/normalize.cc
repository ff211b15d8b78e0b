#include "engine/graph/ops/normalize.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"
#include "engine/graph/ops/reshape.h"

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

absl::StatusOr<ValueId> AddNormalize(double scale, const std::vector<double>& mean,
                                     const std::vector<double>& std, DType dtype, ValueId x, Graph& graph) {
  const Shape shape = graph.value(x).shape;
  const auto op = std::make_shared<NormalizeOp>(scale, mean, std, dtype);
  if (shape.rank() != 3) return graph.Add(op, {x});
  const auto rows = std::make_shared<ReshapeOp>(Shape({shape[0] * shape[1], shape[2]}));
  TANDEM_ASSIGN_OR_RETURN(x, graph.Add(rows, {x}));
  TANDEM_ASSIGN_OR_RETURN(x, graph.Add(op, {x}));
  return graph.Add(std::make_shared<ReshapeOp>(shape), {x});
}

}  // namespace tandem
