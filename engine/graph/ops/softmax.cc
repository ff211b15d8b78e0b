#include "engine/graph/ops/softmax.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

constexpr double kFlopsPerElement = 12;

absl::StatusOr<std::vector<TensorType>> InferAlong(const Op& op, absl::Span<const TensorType> inputs,
                                                   size_t count, int axis) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<TensorType> outputs, InferAlike(op, inputs, count));
  TANDEM_RETURN_IF_ERROR(CheckAxis(op, inputs, axis));
  return outputs;
}

std::string Describe(int axis, bool log) { return absl::StrCat("axis=", axis, log ? " log" : ""); }

}  // namespace

std::string SoftmaxOp::attributes() const { return Describe(axis, log); }

absl::StatusOr<std::vector<TensorType>> SoftmaxOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferAlong(*this, inputs, 1, axis);
}

absl::StatusOr<std::vector<ValueId>> SoftmaxOp::Gradient(Graph& graph, const Node& node,
                                                         absl::Span<const ValueId> grad_outputs,
                                                         const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted, std::make_shared<SoftmaxGradOp>(axis, log),
                         {node.outputs[0], grad_outputs[0]});
}

OpCost SoftmaxOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), kFlopsPerElement, inputs);
}

std::string SoftmaxGradOp::attributes() const { return Describe(axis, log); }

absl::StatusOr<std::vector<TensorType>> SoftmaxGradOp::Infer(absl::Span<const TensorType> inputs) const {
  return InferAlong(*this, inputs, 2, axis);
}

OpCost SoftmaxGradOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), kFlopsPerElement, inputs);
}

}  // namespace tandem
