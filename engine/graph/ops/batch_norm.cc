#include "engine/graph/ops/batch_norm.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::StatusOr<std::vector<TensorType>> InferGrad(const Op& op, absl::Span<const TensorType> inputs) {
  TANDEM_RETURN_IF_ERROR(CheckChannelInputs(op, inputs, 5, 2, 4));
  TANDEM_RETURN_IF_ERROR(CheckShape(op, inputs, 1, inputs[0].shape));
  return std::vector<TensorType>{inputs[0], inputs[2], inputs[2]};
}

}  // namespace

std::string BatchNormOp::attributes() const {
  return absl::StrCat("momentum=", momentum, " epsilon=", epsilon);
}

absl::StatusOr<std::vector<TensorType>> BatchNormOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckChannelInputs(*this, inputs, 5, 1, 4));
  TANDEM_RETURN_IF_ERROR(CheckEpsilon(*this, inputs, epsilon));
  TANDEM_RETURN_IF_ERROR(CheckMomentum(*this, inputs, momentum));
  if (inputs[0].shape.elements() == inputs[0].shape[1]) {
    return InputError(*this, inputs, "a single value a channel has no variance");
  }
  return std::vector<TensorType>{inputs[0], inputs[1], inputs[1]};
}

absl::StatusOr<std::vector<ValueId>> BatchNormOp::Gradient(Graph& graph, const Node& node,
                                                           absl::Span<const ValueId> grad_outputs,
                                                           const std::vector<bool>& wanted) const {
  if (grad_outputs[1] != kNoValue || grad_outputs[2] != kNoValue) {
    return absl::UnimplementedError("batch_norm: the gradient of its statistics");
  }
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<ValueId> grads,
      graph.AddNode(std::make_shared<BatchNormGradOp>(),
                    {node.inputs[0], grad_outputs[0], node.inputs[1], node.outputs[1], node.outputs[2]}));
  return WantedOnly(std::move(grads), wanted);
}

OpCost BatchNormOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 6, inputs);
}

absl::StatusOr<std::vector<TensorType>> BatchNormGradOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferGrad(*this, inputs);
}

OpCost BatchNormGradOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 9, inputs);
}

std::string BatchNormInferenceOp::attributes() const { return absl::StrCat("epsilon=", epsilon); }

absl::StatusOr<std::vector<TensorType>> BatchNormInferenceOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckChannelInputs(*this, inputs, 5, 1, 4));
  TANDEM_RETURN_IF_ERROR(CheckEpsilon(*this, inputs, epsilon));
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<ValueId>> BatchNormInferenceOp::Gradient(Graph& graph, const Node& node,
                                                                    absl::Span<const ValueId> grad_outputs,
                                                                    const std::vector<bool>& wanted) const {
  if (wanted[3] || wanted[4]) {
    return absl::UnimplementedError("batch_norm_inference: the gradient of the running statistics");
  }
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<ValueId> grads,
      graph.AddNode(std::make_shared<BatchNormInferenceGradOp>(epsilon),
                    {node.inputs[0], grad_outputs[0], node.inputs[1], node.inputs[3], node.inputs[4]}));
  return WantedOnly(std::move(grads), wanted);
}

OpCost BatchNormInferenceOp::Cost(absl::Span<const TensorType> inputs,
                                  absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 2, inputs);
}

std::string BatchNormInferenceGradOp::attributes() const { return absl::StrCat("epsilon=", epsilon); }

absl::StatusOr<std::vector<TensorType>> BatchNormInferenceGradOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckEpsilon(*this, inputs, epsilon));
  return InferGrad(*this, inputs);
}

OpCost BatchNormInferenceGradOp::Cost(absl::Span<const TensorType> inputs,
                                      absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 6, inputs);
}

}  // namespace tandem
