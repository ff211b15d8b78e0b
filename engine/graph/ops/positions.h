#ifndef TANDEM_ENGINE_GRAPH_OPS_POSITIONS_H_
#define TANDEM_ENGINE_GRAPH_OPS_POSITIONS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// add_to_each(x [N, ...], b [...]) -> x + b for each of the N samples.
class AddToEachOp final : public Op {
 public:
  absl::string_view kind() const override { return "add_to_each"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
};

// sum_of_each(x [N, ...]) -> [...]: the sum over the first dimension.
class SumOfEachOp final : public Op {
 public:
  absl::string_view kind() const override { return "sum_of_each"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// add_sinusoids(x [N, L, D]) -> x[n, l, d] + Sinusoid(l, d, D).
class AddSinusoidsOp final : public Op {
 public:
  absl::string_view kind() const override { return "add_sinusoids"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
};

// Returns element `d` of `dimension` of the encoding of position `l` (Vaswani et al. 2017). The angle is l /
// 10000^(2 i / dimension). Element 2 i is its sine, element 2 i + 1 its cosine.
double Sinusoid(int64_t l, int64_t d, int64_t dimension);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_POSITIONS_H_
