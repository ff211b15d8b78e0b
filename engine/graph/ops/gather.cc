#include "engine/graph/ops/gather.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::Status CheckIndices(const Op& op, absl::Span<const TensorType> inputs, size_t i) {
  if (inputs[i].dtype == DType::kInt32) return absl::OkStatus();
  return InputError(op, inputs, "the indices must be int32");
}

std::string PaddingText(int64_t padding_index) {
  return padding_index == GatherRowsOp::kNoPadding ? "" : absl::StrCat("padding_index=", padding_index);
}

}  // namespace

std::string GatherRowsOp::attributes() const { return PaddingText(padding_index); }

absl::StatusOr<std::vector<TensorType>> GatherRowsOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 2));
  TANDEM_RETURN_IF_ERROR(CheckIndices(*this, inputs, 1));
  if (padding_index < kNoPadding || padding_index >= inputs[0].shape[0]) {
    return InputError(
        *this, inputs,
        absl::StrCat("the padding index ", padding_index, " is not one of ", inputs[0].shape[0], " rows"));
  }
  const absl::Span<const int64_t> indices = inputs[1].shape.extents();
  std::vector<int64_t> extents(indices.begin(), indices.end());
  extents.push_back(inputs[0].shape[1]);
  return std::vector<TensorType>{{inputs[0].dtype, Shape(std::move(extents))}};
}

absl::StatusOr<std::vector<ValueId>> GatherRowsOp::Gradient(Graph& graph, const Node& node,
                                                            absl::Span<const ValueId> grad_outputs,
                                                            const std::vector<bool>& wanted) const {
  if (wanted[1]) return absl::UnimplementedError("gather_rows: its indices have no gradient");
  if (!wanted[0]) return std::vector<ValueId>{kNoValue, kNoValue};
  const int64_t rows = graph.value(node.inputs[0]).shape[0];
  TANDEM_ASSIGN_OR_RETURN(
      const ValueId grad,
      graph.Add(std::make_shared<GatherRowsGradOp>(rows, padding_index), {node.inputs[1], grad_outputs[0]}));
  return std::vector<ValueId>{grad, kNoValue};
}

OpCost GatherRowsOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  // Only the gathered rows of the weight are read.
  const double row_bytes = static_cast<double>(outputs[0].shape.elements()) * SizeOf(outputs[0].dtype);
  return {.flops = 0,
          .bytes = 2 * row_bytes + static_cast<double>(inputs[1].shape.elements()) * SizeOf(inputs[1].dtype)};
}

std::string GatherRowsGradOp::attributes() const {
  const std::string padding = PaddingText(padding_index);
  return absl::StrCat("rows=", rows, padding.empty() ? "" : " ", padding);
}

absl::StatusOr<std::vector<TensorType>> GatherRowsGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckIndices(*this, inputs, 0));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 1, 1));
  const Shape& indices = inputs[0].shape;
  const Shape& grad = inputs[1].shape;
  bool fits = rows >= 1 && grad.rank() == indices.rank() + 1;
  for (int i = 0; fits && i < indices.rank(); ++i) fits = indices[i] == grad[i];
  if (!fits) return InputError(*this, inputs, "the gradient must have a row for each index");
  return std::vector<TensorType>{{inputs[1].dtype, Shape({rows, grad[-1]})}};
}

OpCost GatherRowsGradOp::Cost(absl::Span<const TensorType> inputs,
                              absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 1, inputs.subspan(1));
}

}  // namespace tandem
