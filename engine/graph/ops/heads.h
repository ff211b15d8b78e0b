#ifndef TANDEM_ENGINE_GRAPH_OPS_HEADS_H_
#define TANDEM_ENGINE_GRAPH_OPS_HEADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// split_heads(x [N, L, P H D]) -> P tensors [N, H, L, D]: y_p[n, h, l, d] = x[n, l, (p H + h) D + d], for
// example query, key and value of each head. With a single part it swaps two dimensions.
class SplitHeadsOp final : public Op {
 public:
  SplitHeadsOp(int64_t parts, int64_t heads) : parts(parts), heads(heads) {}
  absl::string_view kind() const override { return "split_heads"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int64_t parts;
  int64_t heads;
};

// merge_heads(P tensors [N, H, L, D]) -> [N, L, P H D]: the inverse of split_heads.
class MergeHeadsOp final : public Op {
 public:
  absl::string_view kind() const override { return "merge_heads"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_HEADS_H_
