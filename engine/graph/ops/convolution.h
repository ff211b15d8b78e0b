#ifndef TANDEM_ENGINE_GRAPH_OPS_CONVOLUTION_H_
#define TANDEM_ENGINE_GRAPH_OPS_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"
#include "engine/graph/ops/window.h"

namespace tandem {

// The geometry of a convolution's windows, common to its three ops.
struct Conv2dGeometry {
  Size2d stride = {1, 1};
  Size2d padding = {0, 0};  // Zeros on each side.
  Size2d dilation = {1, 1};
  int64_t groups = 1;
  bool operator==(const Conv2dGeometry&) const = default;
  std::string ToString() const;
};

// conv2d(x [N, C, H, W], weight [O, C / groups, KH, KW][, bias [O]]) -> y [N, O, H', W']: cross-correlation.
class Conv2dOp final : public Op {
 public:
  explicit Conv2dOp(Conv2dGeometry geometry) : geometry(geometry) {}
  absl::string_view kind() const override { return "conv2d"; }
  std::string attributes() const override { return geometry.ToString(); }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  Conv2dGeometry geometry;
};

// conv2d_grad_input(grad_y [N, O, H', W'], weight [O, C / groups, KH, KW]) -> grad_x, with `input_shape`. It
// is also the transposed convolution from O to C channels, and so has a gradient.
class Conv2dGradInputOp final : public Op {
 public:
  Conv2dGradInputOp(Conv2dGeometry geometry, Shape input_shape)
      : geometry(geometry), input_shape(std::move(input_shape)) {}
  absl::string_view kind() const override { return "conv2d_grad_input"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  Conv2dGeometry geometry;
  Shape input_shape;
};

// conv2d_grad_weight(x [N, C, H, W], grad_y [N, O, H', W']) -> grad_weight, with `weight_shape` [, grad_bias
// [O] if has_bias].
class Conv2dGradWeightOp final : public Op {
 public:
  Conv2dGradWeightOp(Conv2dGeometry geometry, Shape weight_shape, bool has_bias)
      : geometry(geometry), weight_shape(std::move(weight_shape)), has_bias(has_bias) {}
  absl::string_view kind() const override { return "conv2d_grad_weight"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  Conv2dGeometry geometry;
  Shape weight_shape;
  bool has_bias;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CONVOLUTION_H_
