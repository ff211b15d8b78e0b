#include "engine/graph/ops/group_norm.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

// Checks for `count` inputs with a single type. Input 0 must be [N, C, ...] with channels divisible by
// `groups`.
absl::Status CheckGroups(const Op& op, absl::Span<const TensorType> inputs, size_t count, int64_t groups) {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(op, inputs, count, count));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, count - 1));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(op, inputs, 0, 2));
  const Shape& x = inputs[0].shape;
  if (groups < 1 || x[1] % groups != 0) {
    return InputError(op, inputs,
                      absl::StrCat("groups is ", groups, ", which must divide the ", x[1], " channels"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string GroupNormOp::attributes() const { return absl::StrCat("groups=", groups, " epsilon=", epsilon); }

absl::StatusOr<std::vector<TensorType>> GroupNormOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckGroups(*this, inputs, 3, groups));
  const Shape& x = inputs[0].shape;
  for (const size_t i : {1, 2}) TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, i, Shape({x[1]})));
  TANDEM_RETURN_IF_ERROR(CheckEpsilon(*this, inputs, epsilon));
  const TensorType moment = {inputs[0].dtype, Shape({x[0], groups})};
  return std::vector<TensorType>{inputs[0], moment, moment};
}

absl::StatusOr<std::vector<ValueId>> GroupNormOp::Gradient(Graph& graph, const Node& node,
                                                           absl::Span<const ValueId> grad_outputs,
                                                           const std::vector<bool>& wanted) const {
  if (grad_outputs[1] != kNoValue || grad_outputs[2] != kNoValue) {
    return absl::UnimplementedError("group_norm: the gradient of its statistics");
  }
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<ValueId> grads,
      graph.AddNode(std::make_shared<GroupNormGradOp>(groups),
                    {node.inputs[0], grad_outputs[0], node.inputs[1], node.outputs[1], node.outputs[2]}));
  return WantedOnly(std::move(grads), wanted);
}

OpCost GroupNormOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 6, inputs);
}

std::string GroupNormGradOp::attributes() const { return absl::StrCat("groups=", groups); }

absl::StatusOr<std::vector<TensorType>> GroupNormGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckGroups(*this, inputs, 5, groups));
  const Shape& x = inputs[0].shape;
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 1, x));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 2, Shape({x[1]})));
  for (const size_t i : {3, 4}) TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, i, Shape({x[0], groups})));
  return std::vector<TensorType>{inputs[0], inputs[2], inputs[2]};
}

OpCost GroupNormGradOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 10, inputs);
}

}  // namespace tandem
