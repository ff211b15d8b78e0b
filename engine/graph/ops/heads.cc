#include "engine/graph/ops/heads.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string SplitHeadsOp::attributes() const { return absl::StrCat("parts=", parts, " heads=", heads); }

absl::StatusOr<std::vector<TensorType>> SplitHeadsOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 3));
  const Shape& x = inputs[0].shape;
  if (parts < 1 || heads < 1 || x[2] % parts != 0 || x[2] / parts % heads != 0) {
    return InputError(*this, inputs,
                      absl::StrCat("the last extent, ", x[2], ", cannot be split into ", parts, " parts of ",
                                   heads, " heads"));
  }
  const Shape part({x[0], heads, x[1], x[2] / parts / heads});
  return std::vector<TensorType>(parts, {inputs[0].dtype, part});
}

absl::StatusOr<std::vector<ValueId>> SplitHeadsOp::Gradient(Graph& graph, const Node& node,
                                                            absl::Span<const ValueId> grad_outputs,
                                                            const std::vector<bool>& wanted) const {
  if (!wanted[0]) return std::vector<ValueId>{kNoValue};
  std::vector<ValueId> grads(grad_outputs.begin(), grad_outputs.end());
  for (ValueId& grad : grads) grad = OrZeros(graph, grad, node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const ValueId grad, graph.Add(std::make_shared<MergeHeadsOp>(), std::move(grads)));
  return std::vector<ValueId>{grad};
}

OpCost SplitHeadsOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 0, inputs);
}

absl::StatusOr<std::vector<TensorType>> MergeHeadsOp::Infer(absl::Span<const TensorType> inputs) const {
  if (inputs.empty()) return InputError(*this, inputs, "takes 1 input or more");
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, inputs.size() - 1));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 4));
  for (const TensorType& input : inputs) {
    if (input != inputs[0]) return InputError(*this, inputs, "the inputs must have one shape");
  }
  const Shape& part = inputs[0].shape;
  const int64_t width = static_cast<int64_t>(inputs.size()) * part[1] * part[3];
  return std::vector<TensorType>{{inputs[0].dtype, Shape({part[0], part[2], width})}};
}

absl::StatusOr<std::vector<ValueId>> MergeHeadsOp::Gradient(Graph& graph, const Node& node,
                                                            absl::Span<const ValueId> grad_outputs,
                                                            const std::vector<bool>& wanted) const {
  const int64_t heads = graph.value(node.inputs[0]).shape[1];
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<ValueId> grads,
      graph.AddNode(std::make_shared<SplitHeadsOp>(static_cast<int64_t>(node.inputs.size()), heads),
                    {grad_outputs[0]}));
  return WantedOnly(std::move(grads), wanted);
}

OpCost MergeHeadsOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 0, inputs);
}

}  // namespace tandem
