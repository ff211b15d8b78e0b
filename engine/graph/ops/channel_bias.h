#ifndef TANDEM_ENGINE_GRAPH_OPS_CHANNEL_BIAS_H_
#define TANDEM_ENGINE_GRAPH_OPS_CHANNEL_BIAS_H_

#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// channel_bias(x [N, C, ...], bias [C]) -> y = x + bias[c].
class ChannelBiasOp final : public Op {
 public:
  absl::string_view kind() const override { return "channel_bias"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
};

// channel_bias_grad(grad_y [N, C, ...]) -> grad_bias [C].
class ChannelBiasGradOp final : public Op {
 public:
  absl::string_view kind() const override { return "channel_bias_grad"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CHANNEL_BIAS_H_
