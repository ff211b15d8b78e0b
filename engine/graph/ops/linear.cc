#include "engine/graph/ops/linear.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

absl::StatusOr<std::vector<TensorType>> LinearOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 3));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, inputs.size() - 1));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(*this, inputs, 0, 2));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 1, 2));
  const Shape& x = inputs[0].shape;
  const Shape& weight = inputs[1].shape;
  if (x[-1] != weight[1]) {
    return InputError(*this, inputs,
                      absl::StrCat("the input has ", x[-1], " features, but the weight ", weight.ToString(),
                                   " takes ", weight[1]));
  }
  if (inputs.size() == 3) TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 2, Shape({weight[0]})));
  return std::vector<TensorType>{{inputs[0].dtype, x.WithExtent(-1, weight[0])}};
}

absl::StatusOr<std::vector<ValueId>> LinearOp::Gradient(Graph& graph, const Node& node,
                                                        absl::Span<const ValueId> grad_outputs,
                                                        const std::vector<bool>& wanted) const {
  std::vector<ValueId> grads(node.inputs.size(), kNoValue);
  // The weight's gradient comes first: its reduction can overlap the rest, and it is the last reader of x.
  const bool bias_wanted = node.inputs.size() == 3 && wanted[2];
  if (wanted[1] || bias_wanted) {
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph.AddNode(std::make_shared<LinearGradWeightOp>(bias_wanted), {node.inputs[0], grad_outputs[0]}));
    if (wanted[1]) grads[1] = outputs[0];
    if (bias_wanted) grads[2] = outputs[1];
  }
  if (wanted[0]) {
    TANDEM_ASSIGN_OR_RETURN(
        grads[0], graph.Add(std::make_shared<LinearGradInputOp>(), {grad_outputs[0], node.inputs[1]}));
  }
  return grads;
}

OpCost LinearOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = 2.0 * inputs[0].shape.elements() * inputs[1].shape[0];
  if (inputs.size() == 3) cost.flops += outputs[0].shape.elements();
  return cost;
}

absl::StatusOr<std::vector<TensorType>> LinearGradInputOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(*this, inputs, 0, 2));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 1, 2));
  if (inputs[0].shape[-1] != inputs[1].shape[0]) {
    return InputError(*this, inputs, "the gradient's last extent must be the weight's first");
  }
  return std::vector<TensorType>{{inputs[0].dtype, inputs[0].shape.WithExtent(-1, inputs[1].shape[1])}};
}

OpCost LinearGradInputOp::Cost(absl::Span<const TensorType> inputs,
                               absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = 2.0 * inputs[0].shape.elements() * inputs[1].shape[1];
  return cost;
}

absl::StatusOr<std::vector<TensorType>> LinearGradWeightOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(*this, inputs, 0, 2));
  const Shape& x = inputs[0].shape;
  const Shape& grad_y = inputs[1].shape;
  if (x.rank() != grad_y.rank() || x.WithExtent(-1, grad_y[-1]) != grad_y) {
    return InputError(*this, inputs, "all extents but the last must be equal");
  }
  std::vector<TensorType> outputs = {{inputs[0].dtype, Shape({grad_y[-1], x[-1]})}};
  if (has_bias) outputs.push_back({inputs[0].dtype, Shape({grad_y[-1]})});
  return outputs;
}

OpCost LinearGradWeightOp::Cost(absl::Span<const TensorType> inputs,
                                absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = 2.0 * inputs[0].shape.elements() * inputs[1].shape[-1];
  if (has_bias) cost.flops += inputs[1].shape.elements();
  return cost;
}

}  // namespace tandem
