#include "engine/graph/ops/concat.h"

#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string ConcatOp::attributes() const { return absl::StrCat("axis=", axis); }

absl::StatusOr<std::vector<TensorType>> ConcatOp::Infer(absl::Span<const TensorType> inputs) const {
  if (inputs.empty()) return InputError(*this, inputs, "there must be at least one input");
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, inputs.size() - 1));
  TANDEM_RETURN_IF_ERROR(CheckAxis(*this, inputs, axis));
  int64_t extent = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    if (shape.rank() != inputs[0].shape.rank() ||
        shape.WithExtent(axis, 1) != inputs[0].shape.WithExtent(axis, 1)) {
      return InputError(*this, inputs,
                        absl::StrCat("inputs 0 and ", i, " may differ in dimension ", axis, " alone"));
    }
    extent += shape[axis];
  }
  return std::vector<TensorType>{{inputs[0].dtype, inputs[0].shape.WithExtent(axis, extent)}};
}

absl::StatusOr<std::vector<ValueId>> ConcatOp::Gradient(Graph& graph, const Node& node,
                                                        absl::Span<const ValueId> grad_outputs,
                                                        const std::vector<bool>& wanted) const {
  std::vector<int64_t> sizes;
  for (const ValueId input : node.inputs) sizes.push_back(graph.value(input).shape[axis]);
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<ValueId> grads,
      graph.AddNode(std::make_shared<SplitOp>(axis, std::move(sizes)), {grad_outputs[0]}));
  return WantedOnly(std::move(grads), wanted);
}

OpCost ConcatOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 0, inputs);
}

std::string SplitOp::attributes() const {
  return absl::StrCat("axis=", axis, " sizes=[", absl::StrJoin(sizes, ", "), "]");
}

absl::StatusOr<std::vector<TensorType>> SplitOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckAxis(*this, inputs, axis));
  std::vector<TensorType> outputs;
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (size < 1)
      return InputError(*this, inputs, absl::StrCat("a size is ", size, ", but must be at least 1"));
    sum += size;
    outputs.push_back({inputs[0].dtype, inputs[0].shape.WithExtent(axis, size)});
  }
  if (sum != inputs[0].shape[axis]) {
    return InputError(
        *this, inputs,
        absl::StrCat("the sizes add up to ", sum, ", but dimension ", axis, " has ", inputs[0].shape[axis]));
  }
  return outputs;
}

absl::StatusOr<std::vector<ValueId>> SplitOp::Gradient(Graph& graph, const Node& node,
                                                       absl::Span<const ValueId> grad_outputs,
                                                       const std::vector<bool>& wanted) const {
  if (!wanted[0]) return std::vector<ValueId>{kNoValue};
  std::vector<ValueId> parts(grad_outputs.begin(), grad_outputs.end());
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = OrZeros(graph, parts[i], node.outputs[i]);
  TANDEM_ASSIGN_OR_RETURN(const ValueId grad, graph.Add(std::make_shared<ConcatOp>(axis), std::move(parts)));
  return std::vector<ValueId>{grad};
}

OpCost SplitOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 0, inputs);
}

}  // namespace tandem
