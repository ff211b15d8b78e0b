#include "engine/graph/ops/matmul.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string MatmulOp::attributes() const {
  return absl::StrCat(transpose_a ? "transpose_a" : "", transpose_a && transpose_b ? " " : "",
                      transpose_b ? "transpose_b" : "");
}

absl::StatusOr<std::vector<TensorType>> MatmulOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  if (a.rank() < 2 || a.rank() != b.rank()) {
    return InputError(*this, inputs, "the inputs must have the same number of dimensions, 2 or more");
  }
  const int rank = a.rank();
  for (int i = 0; i + 2 < rank; ++i) {
    if (a[i] != b[i]) return InputError(*this, inputs, "all extents but the last two must be equal");
  }
  const int64_t inner_a = a[transpose_a ? rank - 2 : rank - 1];
  const int64_t inner_b = b[transpose_b ? rank - 1 : rank - 2];
  if (inner_a != inner_b) {
    return InputError(
        *this, inputs,
        absl::StrCat("the sum is over ", inner_a, " elements of the first and ", inner_b, " of the second"));
  }
  std::vector<int64_t> extents(a.extents().begin(), a.extents().end());
  extents[rank - 2] = a[transpose_a ? rank - 1 : rank - 2];
  extents[rank - 1] = b[transpose_b ? rank - 2 : rank - 1];
  return std::vector<TensorType>{{inputs[0].dtype, Shape(std::move(extents))}};
}

absl::StatusOr<std::vector<ValueId>> MatmulOp::Gradient(Graph& graph, const Node& node,
                                                        absl::Span<const ValueId> grad_outputs,
                                                        const std::vector<bool>& wanted) const {
  const ValueId a = node.inputs[0];
  const ValueId b = node.inputs[1];
  const ValueId grad = grad_outputs[0];
  std::vector<ValueId> grads(2, kNoValue);
  // For the operands A and B as multiplied: dA = dY B^T and dB = A^T dY, each transposed if its operand is.
  if (wanted[0]) {
    TANDEM_ASSIGN_OR_RETURN(
        grads[0], transpose_a ? graph.Add(std::make_shared<MatmulOp>(transpose_b, true), {b, grad})
                              : graph.Add(std::make_shared<MatmulOp>(false, !transpose_b), {grad, b}));
  }
  if (wanted[1]) {
    TANDEM_ASSIGN_OR_RETURN(
        grads[1], transpose_b ? graph.Add(std::make_shared<MatmulOp>(true, transpose_a), {grad, a})
                              : graph.Add(std::make_shared<MatmulOp>(!transpose_a, false), {a, grad}));
  }
  return grads;
}

OpCost MatmulOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  const Shape& a = inputs[0].shape;
  cost.flops = 2.0 * outputs[0].shape.elements() * a[transpose_a ? a.rank() - 2 : a.rank() - 1];
  return cost;
}

}  // namespace tandem
