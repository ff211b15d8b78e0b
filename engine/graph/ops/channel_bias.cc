#include "engine/graph/ops/channel_bias.h"

#include <memory>

#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

absl::StatusOr<std::vector<TensorType>> ChannelBiasOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 1));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(*this, inputs, 0, 2));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 1, Shape({inputs[0].shape[1]})));
  return std::vector<TensorType>{inputs[0]};
}

absl::StatusOr<std::vector<ValueId>> ChannelBiasOp::Gradient(Graph& graph, const Node& /*node*/,
                                                             absl::Span<const ValueId> grad_outputs,
                                                             const std::vector<bool>& wanted) const {
  std::vector<ValueId> grads = {wanted[0] ? grad_outputs[0] : kNoValue, kNoValue};
  if (wanted[1]) {
    TANDEM_ASSIGN_OR_RETURN(grads[1], graph.Add(std::make_shared<ChannelBiasGradOp>(), {grad_outputs[0]}));
  }
  return grads;
}

absl::StatusOr<std::vector<TensorType>> ChannelBiasGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_RETURN_IF_ERROR(CheckLeastRank(*this, inputs, 0, 2));
  return std::vector<TensorType>{{inputs[0].dtype, Shape({inputs[0].shape[1]})}};
}

OpCost ChannelBiasGradOp::Cost(absl::Span<const TensorType> inputs,
                               absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), 1, inputs);
}

}  // namespace tandem
