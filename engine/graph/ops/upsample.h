#ifndef TANDEM_ENGINE_GRAPH_OPS_UPSAMPLE_H_
#define TANDEM_ENGINE_GRAPH_OPS_UPSAMPLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"
#include "engine/graph/ops/window.h"

namespace tandem {

// The interpolation of a resized image.
enum class UpsampleMode : uint8_t { kNearest, kBilinear };

// The rule of a resizing, as in PyTorch. A size never follows from a scale here. If a scale is given, source
// places follow from the scale and not from the ratio of the sizes.
struct UpsampleRule {
  UpsampleMode mode = UpsampleMode::kNearest;
  bool align_corners = false;  // For kBilinear: corner pixels map to corner pixels.
  Size2d size = {1, 1};        // The size of the result.
  double scale_h = 0;          // 0: not given.
  double scale_w = 0;
  bool operator==(const UpsampleRule&) const = default;
  std::string ToString() const;
};

// The sources of a row or column of the result: (1 - share) source[first] + share source[second].
struct UpsampleTap {
  int64_t first = 0;
  int64_t second = 0;
  double share = 0;
};

// Returns the taps of all `out` rows of the result over `in` rows of the image. If both numbers are equal,
// each row is copied, whatever the scale, as in PyTorch.
std::vector<UpsampleTap> UpsampleTaps(UpsampleMode mode, bool align_corners, int64_t in, int64_t out,
                                      double scale);

// upsample(x [N, C, H, W]) -> y [N, C, size].
class UpsampleOp final : public Op {
 public:
  explicit UpsampleOp(UpsampleRule rule) : rule(rule) {}
  absl::string_view kind() const override { return "upsample"; }
  std::string attributes() const override { return rule.ToString(); }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  UpsampleRule rule;
};

// upsample_grad(grad_y [N, C, size]) -> grad_x, with `input_shape`.
class UpsampleGradOp final : public Op {
 public:
  UpsampleGradOp(UpsampleRule rule, Shape input_shape) : rule(rule), input_shape(std::move(input_shape)) {}
  absl::string_view kind() const override { return "upsample_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  UpsampleRule rule;
  Shape input_shape;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_UPSAMPLE_H_
