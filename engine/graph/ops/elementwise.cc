#include "engine/graph/ops/elementwise.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

absl::StatusOr<std::vector<TensorType>> ReluOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferAlike(*this, inputs, 1);
}

absl::StatusOr<std::vector<ValueId>> ReluOp::Gradient(Graph& graph, const Node& node,
                                                      absl::Span<const ValueId> grad_outputs,
                                                      const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<ReluGradOp>(), {node.outputs[0], grad_outputs[0]});
}

absl::StatusOr<std::vector<TensorType>> ReluGradOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferAlike(*this, inputs, 2);
}

absl::StatusOr<std::vector<TensorType>> AddOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferAlike(*this, inputs, 2);
}

absl::StatusOr<std::vector<ValueId>> AddOp::Gradient(Graph& /*graph*/, const Node& /*node*/,
                                                     absl::Span<const ValueId> grad_outputs,
                                                     const std::vector<bool>& wanted) const {
  return std::vector<ValueId>{wanted[0] ? grad_outputs[0] : kNoValue, wanted[1] ? grad_outputs[0] : kNoValue};
}

absl::StatusOr<std::vector<TensorType>> MultiplyOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferAlike(*this, inputs, 2);
}

absl::StatusOr<std::vector<ValueId>> MultiplyOp::Gradient(Graph& graph, const Node& node,
                                                          absl::Span<const ValueId> grad_outputs,
                                                          const std::vector<bool>& wanted) const {
  std::vector<ValueId> grads(2, kNoValue);
  for (const int i : {0, 1}) {
    if (!wanted[i]) continue;
    TANDEM_ASSIGN_OR_RETURN(grads[i],
                            graph.Add(std::make_shared<MultiplyOp>(), {grad_outputs[0], node.inputs[1 - i]}));
  }
  return grads;
}

std::string ScaleOp::attributes() const { return absl::StrCat("factor=", factor); }

absl::StatusOr<std::vector<TensorType>> ScaleOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferAlike(*this, inputs, 1);
}

absl::StatusOr<std::vector<ValueId>> ScaleOp::Gradient(Graph& graph, const Node& /*node*/,
                                                       absl::Span<const ValueId> grad_outputs,
                                                       const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<ScaleOp>(factor), {grad_outputs[0]});
}

std::string DivideOp::attributes() const { return absl::StrCat("factor=", factor); }

absl::StatusOr<std::vector<TensorType>> DivideOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  if (inputs[1].shape != Shape()) return InputError(*this, inputs, "the divisor must be a scalar");
  if (!std::isfinite(factor)) return InputError(*this, inputs, absl::StrCat("factor is ", factor));
  return std::vector<TensorType>{inputs[0]};
}

}  // namespace tandem
