#include "engine/graph/ops/classification.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

// Checks that inputs 0 and 1 are scores [..., C] and labels int32 [...].
absl::Status CheckScoresAndLabels(const Op& op, absl::Span<const TensorType> inputs) {
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(op, inputs, 0, 2));
  return CheckType(op, inputs, 1, {DType::kInt32, inputs[0].shape.UpTo(-1)}, "the labels");
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
  return GradientOfFirst(graph, wanted, std::make_shared<SoftmaxCrossEntropyGradOp>(),
                         {node.outputs[1], node.inputs[1], grad_outputs[0]});
}

OpCost SoftmaxCrossEntropyOp::Cost(absl::Span<const TensorType> inputs,
                                   absl::Span<const TensorType> outputs) const {
  // The maximum, the difference, the exponential, the sum and the quotient.
  return WithFlops(Op::Cost(inputs, outputs), 5, inputs);
}

absl::StatusOr<std::vector<TensorType>> SoftmaxCrossEntropyGradOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckScoresAndLabels(*this, inputs));
  TANDEM_RETURN_IF_ERROR(CheckLossGradient(*this, inputs));
  return std::vector<TensorType>{inputs[0]};
}

std::string CountCorrectOp::attributes() const {
  return absl::StrCat("k=", k, ignore_index.has_value() ? absl::StrCat(" ignore_index=", *ignore_index) : "");
}

absl::StatusOr<std::vector<TensorType>> CountCorrectOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  if (k < 1) return InputError(*this, inputs, absl::StrCat("k is ", k, ", but must be at least 1"));
  if (IsFloatingPoint(inputs[1].dtype)) {
    TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
    if (inputs[0].shape.rank() < 2 || inputs[1].shape != inputs[0].shape) {
      return InputError(*this, inputs, "the target must have the shape of the scores");
    }
  } else {
    TANDEM_RETURN_IF_ERROR(CheckScoresAndLabels(*this, inputs));
  }
  return std::vector<TensorType>{{SumType(inputs[0].dtype), Shape()}};
}

std::string CountLabelsOp::attributes() const { return absl::StrCat("ignore_index=", ignore_index); }

absl::StatusOr<std::vector<TensorType>> CountLabelsOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  if (inputs[0].dtype != DType::kInt32) return InputError(*this, inputs, "the labels must be int32");
  return std::vector<TensorType>{{DType::kFloat32, Shape()}};
}

absl::StatusOr<std::vector<TensorType>> CountSidesOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  const Shape& x = inputs[0].shape;
  const bool numbers = IsFloatingPoint(inputs[1].dtype) && inputs[1].shape == x;
  const bool classes = x.rank() == 2 && x[1] == 1 && inputs[1] == TensorType{DType::kInt32, Shape({x[0]})};
  if (!numbers && !classes) {
    return InputError(*this, inputs, absl::StrCat("the targets must be numbers ", x.ToString()));
  }
  return std::vector<TensorType>{{SumType(inputs[0].dtype), Shape()}};
}

}  // namespace tandem
