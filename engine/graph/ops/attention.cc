#include "engine/graph/ops/attention.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::Status CheckScores(const Op& op, absl::Span<const TensorType> inputs, double scale) {
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, inputs.size() - 1));
  if (!(scale > 0)) return InputError(op, inputs, absl::StrCat("the scale, ", scale, ", must be above 0"));
  if (inputs[0].shape.rank() >= 2) return absl::OkStatus();
  return InputError(op, inputs, "the scores must have 2 dimensions or more");
}

std::string Text(double scale, bool causal) { return absl::StrCat("scale=", scale, causal ? " causal" : ""); }

}  // namespace

std::string AttentionSoftmaxOp::attributes() const { return Text(scale, causal); }

absl::StatusOr<std::vector<TensorType>> AttentionSoftmaxOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckScores(*this, inputs, scale));
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<ValueId>> AttentionSoftmaxOp::Gradient(Graph& graph, const Node& node,
                                                                  absl::Span<const ValueId> grad_outputs,
                                                                  const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<AttentionSoftmaxGradOp>(scale, causal),
                         {node.outputs[0], grad_outputs[0]});
}

OpCost AttentionSoftmaxOp::Cost(absl::Span<const TensorType> inputs,
                                absl::Span<const TensorType> outputs) const {
  // The scale, the maximum, the difference, the exponential, the sum and the quotient.
  return WithFlops(Op::Cost(inputs, outputs), 6, inputs);
}

std::string AttentionSoftmaxGradOp::attributes() const { return Text(scale, causal); }

absl::StatusOr<std::vector<TensorType>> AttentionSoftmaxGradOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckScores(*this, inputs, scale));
  if (inputs[1] != inputs[0]) return InputError(*this, inputs, "the inputs must have one shape");
  return std::vector<TensorType>{inputs[0]};
}

OpCost AttentionSoftmaxGradOp::Cost(absl::Span<const TensorType> inputs,
                                    absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 5, inputs);
}

}  // namespace tandem
