#include "engine/graph/ops/classification.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

// That inputs 0 and 1 are scores [N, C] and labels int32 [N].
absl::Status CheckScoresAndLabels(const Op& op, absl::Span<const TensorType> inputs) {
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckRank(op, inputs, 0, 2));
  const TensorType expected = {DType::kInt32, Shape({inputs[0].shape[0]})};
  if (inputs[1] != expected) {
    return InputError(op, inputs, absl::StrCat("the labels must be ", expected.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TensorType>> SoftmaxCrossEntropyOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckScoresAndLabels(*this, inputs));
  return std::vector<TensorType>{{SumType(inputs[0].dtype), Shape()}, inputs[0]};
}

absl::StatusOr<std::vector<ValueId>> SoftmaxCrossEntropyOp::Gradient(Graph& graph, const Node& node,
                                                                     absl::Span<const ValueId> grad_outputs,
                                                                     const std::vector<bool>& wanted) const {
  if (grad_outputs[1] != kNoValue) {
    return absl::UnimplementedError("softmax_cross_entropy: its probabilities are not differentiable");
  }
  if (wanted[1]) return absl::UnimplementedError("softmax_cross_entropy: its labels have no gradient");
  if (!wanted[0]) return std::vector<ValueId>{kNoValue, kNoValue};
  TANDEM_ASSIGN_OR_RETURN(const ValueId grad, graph.Add(std::make_shared<SoftmaxCrossEntropyGradOp>(),
                                                        {node.outputs[1], node.inputs[1], grad_outputs[0]}));
  return std::vector<ValueId>{grad, kNoValue};
}

OpCost SoftmaxCrossEntropyOp::Cost(absl::Span<const TensorType> inputs,
                                   absl::Span<const TensorType> outputs) const {
  OpCost cost = Op::Cost(inputs, outputs);
  // The maximum, the difference, the exponential, the sum and the quotient.
  cost.flops = 5.0 * inputs[0].shape.elements();
  return cost;
}

absl::StatusOr<std::vector<TensorType>> SoftmaxCrossEntropyGradOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckScoresAndLabels(*this, inputs));
  const TensorType expected = {SumType(inputs[0].dtype), Shape()};
  if (inputs[2] != expected) {
    return InputError(*this, inputs, absl::StrCat("the loss's gradient must be ", expected.ToString()));
  }
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<TensorType>> CountCorrectOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckScoresAndLabels(*this, inputs));
  return std::vector<TensorType>{{SumType(inputs[0].dtype), Shape()}};
}

}  // namespace tandem
