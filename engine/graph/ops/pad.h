#ifndef TANDEM_ENGINE_GRAPH_OPS_PAD_H_
#define TANDEM_ENGINE_GRAPH_OPS_PAD_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"
#include "engine/graph/ops/window.h"

namespace tandem {

// Rows and columns around an image, each at least 0.
struct Margins {
  Size2d before = {0, 0};  // Above and on the left.
  Size2d after = {0, 0};   // Below and on the right.
  bool operator==(const Margins&) const = default;
  std::string ToString() const;
};

// pad2d(x [N, C, H, W]) -> y: x with zeros in the margins.
class Pad2dOp final : public Op {
 public:
  explicit Pad2dOp(Margins margins) : margins(margins) {}
  absl::string_view kind() const override { return "pad2d"; }
  std::string attributes() const override { return margins.ToString(); }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  Margins margins;
};

// crop2d(x [N, C, H, W]) -> y: x without the margins. At least one pixel remains.
class Crop2dOp final : public Op {
 public:
  explicit Crop2dOp(Margins margins) : margins(margins) {}
  absl::string_view kind() const override { return "crop2d"; }
  std::string attributes() const override { return margins.ToString(); }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  Margins margins;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_PAD_H_
