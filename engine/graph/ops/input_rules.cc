#include "engine/graph/ops/input_rules.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

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

absl::Status CheckLeastRank(const Op& op, absl::Span<const TensorType> inputs, size_t i, int least) {
  if (inputs[i].shape.rank() >= least) return absl::OkStatus();
  return InputError(
      op, inputs,
      absl::StrCat("input ", i, " must have at least ", least, least == 1 ? " dimension" : " dimensions"));
}

absl::Status CheckShape(const Op& op, absl::Span<const TensorType> inputs, size_t i, const Shape& shape) {
  if (inputs[i].shape == shape) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat("input ", i, " must have the shape ", shape.ToString()));
}

absl::Status CheckType(const Op& op, absl::Span<const TensorType> inputs, size_t i, const TensorType& type,
                       absl::string_view name) {
  if (inputs[i] == type) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat(name, " must be ", type.ToString()));
}

absl::Status CheckLossGradient(const Op& op, absl::Span<const TensorType> inputs) {
  return CheckType(op, inputs, 2, {SumType(inputs[0].dtype), Shape()}, "the loss's gradient");
}

absl::Status CheckAxis(const Op& op, absl::Span<const TensorType> inputs, int axis) {
  if (axis >= 0 && axis < inputs[0].shape.rank()) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat("there is no dimension ", axis));
}

absl::Status CheckChannelInputs(const Op& op, absl::Span<const TensorType> inputs, size_t count, size_t first,
                                size_t last) {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(op, inputs, count, count));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, count - 1));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(op, inputs, 0, 2));
  for (size_t i = first; i <= last; ++i) {
    TANDEM_RETURN_IF_ERROR(CheckShape(op, inputs, i, Shape({inputs[0].shape[1]})));
  }
  return absl::OkStatus();
}

absl::Status CheckMomentum(const Op& op, absl::Span<const TensorType> inputs, double momentum) {
  if (momentum >= 0 && momentum <= 1) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat("momentum is ", momentum, ", but must be from 0 to 1"));
}

absl::Status CheckEpsilon(const Op& op, absl::Span<const TensorType> inputs, double epsilon) {
  if (epsilon >= 0 && std::isfinite(epsilon)) return absl::OkStatus();
  return InputError(op, inputs, absl::StrCat("epsilon is ", epsilon, ", but must be finite and at least 0"));
}

absl::StatusOr<std::vector<TensorType>> InferAlike(const Op& op, absl::Span<const TensorType> inputs,
                                                   size_t count) {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(op, inputs, count, count));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, count - 1));
  for (const TensorType& input : inputs) {
    if (input.shape != inputs[0].shape) return InputError(op, inputs, "the inputs must have one shape");
  }
  return std::vector<TensorType>{inputs[0]};
}

absl::Status CheckGradients(const Op& op, absl::Span<const TensorType> inputs, int count) {
  if (count < 1) return InputError(op, inputs, absl::StrCat("count is ", count, ", but must be at least 1"));
  TANDEM_RETURN_IF_ERROR(CheckInputCount(op, inputs, count, count));
  return CheckOneFloatingType(op, inputs, 0, inputs.size() - 1);
}

std::vector<std::pair<int, int>> PairsInPlace(int first_output, int first_input, int count) {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < count; ++i) pairs.emplace_back(first_output + i, first_input + i);
  return pairs;
}

DType SumType(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

OpCost WithFlops(OpCost cost, double flops_per_element, absl::Span<const TensorType> tensors) {
  cost.flops = flops_per_element * static_cast<double>(tensors[0].shape.elements());
  return cost;
}

}  // namespace tandem
