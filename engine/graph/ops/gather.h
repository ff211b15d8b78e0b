#ifndef TANDEM_ENGINE_GRAPH_OPS_GATHER_H_
#define TANDEM_ENGINE_GRAPH_OPS_GATHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// gather_rows(weight [V, D], indices int32 [...]) -> y [..., D], y[i] = weight[indices[i]]. An index outside
// [0, V) is an error at run time. The row `padding_index` gets no gradient.
class GatherRowsOp final : public Op {
 public:
  static constexpr int64_t kNoPadding = -1;

  explicit GatherRowsOp(int64_t padding_index = kNoPadding) : padding_index(padding_index) {}
  absl::string_view kind() const override { return "gather_rows"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int64_t padding_index;
};

// gather_rows_grad(indices int32 [...], grad_y [..., D]) -> grad_weight [rows, D]. Row r is the sum of grad_y
// at all indices r. Row `padding_index` is zero.
class GatherRowsGradOp final : public Op {
 public:
  GatherRowsGradOp(int64_t rows, int64_t padding_index) : rows(rows), padding_index(padding_index) {}
  absl::string_view kind() const override { return "gather_rows_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int64_t rows;
  int64_t padding_index;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_GATHER_H_
