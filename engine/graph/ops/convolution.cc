#include "engine/graph/ops/convolution.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

// Returns the shape of the output. Errors show `inputs`.
absl::StatusOr<Shape> OutputShape(const Op& op, absl::Span<const TensorType> inputs,
                                  const Conv2dGeometry& geometry, const Shape& x, const Shape& weight) {
  if (x.rank() != 4 || weight.rank() != 4) {
    return InputError(op, inputs,
                      absl::StrCat("input ", x.ToString(), " and weight ", weight.ToString(),
                                   " must both have 4 dimensions"));
  }
  const int64_t groups = geometry.groups;
  if (groups < 1 || x[1] % groups != 0 || weight[0] % groups != 0) {
    return InputError(op, inputs,
                      absl::StrCat("groups is ", groups, ", which must divide both the ", x[1],
                                   " input channels and the ", weight[0], " filters"));
  }
  if (weight[1] != x[1] / groups) {
    return InputError(op, inputs,
                      absl::StrCat("weight ", weight.ToString(), " does not fit input ", x.ToString(), " in ",
                                   groups, " groups: its second extent must be ", x[1] / groups));
  }
  const absl::StatusOr<Size2d> windows = CountWindows({x[2], x[3]}, {weight[2], weight[3]}, geometry.stride,
                                                      geometry.padding, geometry.dilation);
  if (!windows.ok()) return InputError(op, inputs, windows.status().message());
  return Shape({x[0], weight[0], windows->h, windows->w});
}

// A multiplication and an addition for each output element and each element of its window.
double Flops(const Shape& y, const Shape& weight) {
  return 2.0 * y.elements() * weight[1] * weight[2] * weight[3];
}

}  // namespace

std::string Conv2dGeometry::ToString() const {
  return absl::StrCat("stride=", stride.ToString(), " padding=", padding.ToString(),
                      " dilation=", dilation.ToString(), " groups=", groups);
}

absl::StatusOr<std::vector<TensorType>> Conv2dOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 3));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, inputs.size() - 1));
  TANDEM_ASSIGN_OR_RETURN(Shape y, OutputShape(*this, inputs, geometry, inputs[0].shape, inputs[1].shape));
  if (inputs.size() == 3) TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 2, Shape({y[1]})));
  return std::vector<TensorType>{{inputs[0].dtype, std::move(y)}};
}

absl::StatusOr<std::vector<ValueId>> Conv2dOp::Gradient(Graph& graph, const Node& node,
                                                        absl::Span<const ValueId> grad_outputs,
                                                        const std::vector<bool>& wanted) const {
  const ValueId x = node.inputs[0];
  const ValueId weight = node.inputs[1];
  std::vector<ValueId> grads(node.inputs.size(), kNoValue);
  // The weight's gradient comes first: its reduction can overlap the rest, and it is the last reader of x.
  const bool bias_wanted = node.inputs.size() == 3 && wanted[2];
  if (wanted[1] || bias_wanted) {
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph.AddNode(std::make_shared<Conv2dGradWeightOp>(geometry, graph.value(weight).shape, bias_wanted),
                      {x, grad_outputs[0]}));
    if (wanted[1]) grads[1] = outputs[0];
    if (bias_wanted) grads[2] = outputs[1];
  }
  if (wanted[0]) {
    TANDEM_ASSIGN_OR_RETURN(grads[0],
                            graph.Add(std::make_shared<Conv2dGradInputOp>(geometry, graph.value(x).shape),
                                      {grad_outputs[0], weight}));
  }
  return grads;
}

OpCost Conv2dOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = Flops(outputs[0].shape, inputs[1].shape);
  if (inputs.size() == 3) cost.flops += outputs[0].shape.elements();
  return cost;
}

std::string Conv2dGradInputOp::attributes() const {
  return absl::StrCat(geometry.ToString(), " input_shape=", input_shape.ToString());
}

absl::StatusOr<std::vector<TensorType>> Conv2dGradInputOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  TANDEM_ASSIGN_OR_RETURN(const Shape y, OutputShape(*this, inputs, geometry, input_shape, inputs[1].shape));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 0, y));
  return std::vector<TensorType>{{inputs[0].dtype, input_shape}};
}

absl::StatusOr<std::vector<ValueId>> Conv2dGradInputOp::Gradient(Graph& graph, const Node& node,
                                                                 absl::Span<const ValueId> grad_outputs,
                                                                 const std::vector<bool>& wanted) const {
  const ValueId grad_y = node.inputs[0];
  const ValueId weight = node.inputs[1];
  std::vector<ValueId> grads(2, kNoValue);
  if (wanted[1]) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                            graph.AddNode(std::make_shared<Conv2dGradWeightOp>(
                                              geometry, graph.value(weight).shape, /*has_bias=*/false),
                                          {grad_outputs[0], grad_y}));
    grads[1] = outputs[0];
  }
  if (wanted[0]) {
    TANDEM_ASSIGN_OR_RETURN(grads[0],
                            graph.Add(std::make_shared<Conv2dOp>(geometry), {grad_outputs[0], weight}));
  }
  return grads;
}

OpCost Conv2dGradInputOp::Cost(absl::Span<const TensorType> inputs,
                               absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = Flops(inputs[0].shape, inputs[1].shape);
  return cost;
}

std::string Conv2dGradWeightOp::attributes() const {
  return absl::StrCat(geometry.ToString(), " weight_shape=", weight_shape.ToString(),
                      has_bias ? " has_bias" : "");
}

absl::StatusOr<std::vector<TensorType>> Conv2dGradWeightOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  TANDEM_ASSIGN_OR_RETURN(const Shape y, OutputShape(*this, inputs, geometry, inputs[0].shape, weight_shape));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 1, y));
  std::vector<TensorType> outputs = {{inputs[0].dtype, weight_shape}};
  if (has_bias) outputs.push_back({inputs[0].dtype, Shape({weight_shape[0]})});
  return outputs;
}

OpCost Conv2dGradWeightOp::Cost(absl::Span<const TensorType> inputs,
                                absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  cost.flops = Flops(inputs[1].shape, weight_shape);
  if (has_bias) cost.flops += inputs[1].shape.elements();
  return cost;
}

}  // namespace tandem
