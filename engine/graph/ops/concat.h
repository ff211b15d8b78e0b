#ifndef TANDEM_ENGINE_GRAPH_OPS_CONCAT_H_
#define TANDEM_ENGINE_GRAPH_OPS_CONCAT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// concat(x0, x1, ...) -> the inputs joined along `axis`. All other extents are equal.
class ConcatOp final : public Op {
 public:
  explicit ConcatOp(int axis) : axis(axis) {}
  absl::string_view kind() const override { return "concat"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int axis;  // From 0.
};

// split(x) -> parts of x along `axis`. `sizes` are the parts' extents and add up to the axis's extent.
class SplitOp final : public Op {
 public:
  SplitOp(int axis, std::vector<int64_t> sizes) : axis(axis), sizes(std::move(sizes)) {}
  absl::string_view kind() const override { return "split"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  int axis;  // From 0.
  std::vector<int64_t> sizes;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CONCAT_H_
