#ifndef TANDEM_ENGINE_GRAPH_OPS_UPSAMPLE_H_
#define TANDEM_ENGINE_GRAPH_OPS_UPSAMPLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"
#include "engine/graph/ops/window.h"

namespace tandem {

// Where the pixels of a resized image come from.
enum class UpsampleMode : uint8_t { kNearest, kBilinear };

// How an image is resized; PyTorch's rules. A size is never derived from a scale here, but where a scale is
// given, places are by it and not by the ratio of the sizes.
struct UpsampleRule {
  UpsampleMode mode = UpsampleMode::kNearest;
  bool align_corners = false;  // Of kBilinear: corners fall on corners.
  Size2d size = {1, 1};        // Of the result.
  double scale_h = 0;          // 0: none given.
  double scale_w = 0;
  bool operator==(const UpsampleRule&) const = default;
  std::string ToString() const;
};

// What a row (or column) of the result is made of: (1 - share) source[first] + share source[second].
struct UpsampleTap {
  int64_t first = 0;
  int64_t second = 0;
  double share = 0;
};

// The taps of all `out` rows of the result over `in` rows of the image.
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

// upsample_grad(grad_y [N, C, size]) -> grad_x, of `input_shape`.
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
