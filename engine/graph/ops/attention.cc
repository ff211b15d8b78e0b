#include "engine/graph/ops/attention.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::StatusOr<std::vector<TensorType>> InferScores(const Op& op, absl::Span<const TensorType> inputs,
                                                    size_t count, double scale) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<TensorType> outputs, InferAlike(op, inputs, count));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(op, inputs, 0, 2));
  if (!(scale > 0)) return InputError(op, inputs, absl::StrCat("the scale, ", scale, ", must be above 0"));
  return outputs;
}

std::string Text(double scale, bool causal) { return absl::StrCat("scale=", scale, causal ? " causal" : ""); }

}  // namespace

std::string AttentionSoftmaxOp::attributes() const { return Text(scale, causal); }

absl::StatusOr<std::vector<TensorType>> AttentionSoftmaxOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferScores(*this, inputs, 1, scale);
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
  return InferScores(*this, inputs, 2, scale);
}

OpCost AttentionSoftmaxGradOp::Cost(absl::Span<const TensorType> inputs,
                                    absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 5, inputs);
}

}  // namespace tandem
