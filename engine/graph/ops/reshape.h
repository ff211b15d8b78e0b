#ifndef TANDEM_ENGINE_GRAPH_OPS_RESHAPE_H_
#define TANDEM_ENGINE_GRAPH_OPS_RESHAPE_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// reshape(x) -> x's elements in row-major order as `shape`, which has as many elements. Any type.
class ReshapeOp final : public Op {
 public:
  explicit ReshapeOp(Shape shape) : shape(std::move(shape)) {}
  absl::string_view kind() const override { return "reshape"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  Shape shape;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_RESHAPE_H_
