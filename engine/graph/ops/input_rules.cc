#include "engine/graph/ops/input_rules.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {

absl::Status InputError(const Op& op, absl::Span<const TensorType> inputs, absl::string_view why) {
  const auto append = [](std::string* out, const TensorType& type) { absl::StrAppend(out, type.ToString()); };
  return absl::InvalidArgumentError(
      absl::StrCat(op.kind(), "(", absl::StrJoin(inputs, ", ", append), "): ", why));
}

absl::Status CheckInputCount(const Op& op, absl::Span<const TensorType> inputs, size_t least, size_t most) {
  if (inputs.size() >= least && inputs.size() <= most) return absl::OkStatus();
  return InputError(op, inputs,
                    least == most
                        ? absl::StrCat("takes ", least, " inputs, not ", inputs.size())
                        : absl::StrCat("takes ", least, " to ", most, " inputs, not ", inputs.size()));
}

absl::Status CheckOneFloatingType(const Op& op, absl::Span<const TensorType> inputs, size_t first,
                                  size_t last) {
  for (size_t i = first; i <= last; ++i) {
    if (!IsFloatingPoint(inputs[i].dtype)) {
      return InputError(op, inputs, absl::StrCat("input ", i, " must be of a floating-point type"));
    }
    if (inputs[i].dtype != inputs[first].dtype) {
      return InputError(op, inputs, absl::StrCat("inputs ", first, " and ", i, " must be of one type"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRank(const Op& op, absl::Span<const TensorType> inputs, size_t i, int rank) {
  if (inputs[i].shape.rank() == rank) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat("input ", i, " must have ", rank, " dimensions"));
}

DType SumType(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

OpCost WithFlops(OpCost cost, double flops_per_element, absl::Span<const TensorType> tensors) {
  cost.flops = flops_per_element * static_cast<double>(tensors[0].shape.elements());
  return cost;
}

}  // namespace tandem
