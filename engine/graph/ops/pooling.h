#ifndef TANDEM_ENGINE_GRAPH_OPS_POOLING_H_
#define TANDEM_ENGINE_GRAPH_OPS_POOLING_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"
#include "engine/graph/ops/window.h"

namespace tandem {

// How a pooling's windows lie.
struct PoolGeometry {
  Size2d size = {1, 1};
  Size2d stride = {1, 1};
  Size2d padding = {0, 0};  // On each side; at most half the size.
  // Whether a last window that begins within the image or its padding before it, but reaches beyond the
  // padding after it, counts.
  bool ceil_mode = false;
  bool operator==(const PoolGeometry&) const = default;
  std::string ToString() const;
};

// max_pool2d(x [N, C, H, W]) -> y [N, C, H', W'], index uint8 [N, C, H', W']. Padding counts as minus
// infinity. The index is the maximum's place in its window, row * size.w + column, counted from the window's
// corner even where that lies in the padding. Of equal maxima the first, row by row, wins; a NaN wins over
// every number, and of several NaNs the last (all as in PyTorch). Windows of at most 255 elements.
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

// max_pool2d_grad(grad_y [N, C, H', W'], index uint8 [N, C, H', W']) -> grad_x, of `input_shape`.
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

// How many windows lie over an image: CountWindows, and with ceil_mode those that reach beyond the padding.
absl::StatusOr<Size2d> CountPoolWindows(const PoolGeometry& geometry, Size2d image);

// average_pool2d(x [N, C, H, W]) -> y [N, C, H', W'], the sum of each window divided by its elements: those
// within the image and its padding with count_include_pad, else those within the image.
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

// average_pool2d_grad(grad_y [N, C, H', W']) -> grad_x, of `input_shape`.
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
