#ifndef TANDEM_ENGINE_GRAPH_OPS_POOLING_H_
#define TANDEM_ENGINE_GRAPH_OPS_POOLING_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"
#include "engine/graph/ops/window.h"

namespace tandem {

// The geometry of a pooling's windows.
struct PoolGeometry {
  Size2d size = {1, 1};
  Size2d stride = {1, 1};
  Size2d padding = {0, 0};  // On each side. At most half the size.
  // If true, an incomplete last window counts. It must begin in the image or in the padding before the image,
  // and may reach beyond the padding after the image.
  bool ceil_mode = false;
  bool operator==(const PoolGeometry&) const = default;
  std::string ToString() const;
};

// max_pool2d(x [N, C, H, W]) -> y [N, C, H', W'], index uint8 [N, C, H', W']. Padding counts as minus
// infinity. index is the maximum's place in its window, row * size.w + column. It counts from the window's
// corner, even if the corner is in the padding. As in PyTorch, the first of equal maxima wins, row by row,
// and the last NaN wins over every number. A window has at most 255 elements.
class MaxPool2dOp final : public Op {
 public:
  explicit MaxPool2dOp(PoolGeometry geometry) : geometry(geometry) {}
  absl::string_view kind() const override { return "max_pool2d"; }
  std::string attributes() const override { return geometry.ToString(); }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  PoolGeometry geometry;
};

// max_pool2d_grad(grad_y [N, C, H', W'], index uint8 [N, C, H', W']) -> grad_x, with `input_shape`.
class MaxPool2dGradOp final : public Op {
 public:
  MaxPool2dGradOp(PoolGeometry geometry, Shape input_shape)
      : geometry(geometry), input_shape(std::move(input_shape)) {}
  absl::string_view kind() const override { return "max_pool2d_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;

  PoolGeometry geometry;
  Shape input_shape;
};

// Returns the number of windows over an image: CountWindows, with ceil_mode also the incomplete last windows.
absl::StatusOr<Size2d> CountPoolWindows(const PoolGeometry& geometry, Size2d image);

// average_pool2d(x [N, C, H, W]) -> y [N, C, H', W']: the sum of each window divided by the number of its
// elements. With count_include_pad, elements in the padding also count.
class AveragePool2dOp final : public Op {
 public:
  AveragePool2dOp(PoolGeometry geometry, bool count_include_pad)
      : geometry(geometry), count_include_pad(count_include_pad) {}
  absl::string_view kind() const override { return "average_pool2d"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  PoolGeometry geometry;
  bool count_include_pad;
};

// average_pool2d_grad(grad_y [N, C, H', W']) -> grad_x, with `input_shape`.
class AveragePool2dGradOp final : public Op {
 public:
  AveragePool2dGradOp(PoolGeometry geometry, bool count_include_pad, Shape input_shape)
      : geometry(geometry), count_include_pad(count_include_pad), input_shape(std::move(input_shape)) {}
  absl::string_view kind() const override { return "average_pool2d_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  PoolGeometry geometry;
  bool count_include_pad;
  Shape input_shape;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_POOLING_H_
