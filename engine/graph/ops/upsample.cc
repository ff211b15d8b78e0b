#include "engine/graph/ops/upsample.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::StatusOr<Shape> ResizedShape(const Op& op, absl::Span<const TensorType> inputs,
                                   const UpsampleRule& rule, const Shape& x) {
  if (x.rank() != 4) return InputError(op, inputs, "the image must have 4 dimensions");
  const auto fits = [](double scale) { return scale >= 0 && std::isfinite(scale); };
  if (rule.size.h < 1 || rule.size.w < 1 || !fits(rule.scale_h) || !fits(rule.scale_w)) {
    return InputError(op, inputs, absl::StrCat(rule.ToString(), ": sizes must be at least 1, scales finite"));
  }
  return Shape({x[0], x[1], rule.size.h, rule.size.w});
}

// Four products and their sums for each pixel of the result.
OpCost WithFlops(OpCost cost, const UpsampleRule& rule, const Shape& y) {
  cost.flops = rule.mode == UpsampleMode::kNearest ? 0 : 8.0 * static_cast<double>(y.elements());
  return cost;
}

}  // namespace

std::string UpsampleRule::ToString() const {
  return absl::StrCat(mode == UpsampleMode::kNearest ? "nearest" : "bilinear",
                      align_corners ? " align_corners" : "", " size=", size.ToString(), " scale=[", scale_h,
                      ", ", scale_w, "]");
}

std::vector<UpsampleTap> UpsampleTaps(UpsampleMode mode, bool align_corners, int64_t in, int64_t out,
                                      double scale) {
  std::vector<UpsampleTap> taps(out);
  if (in == out) {
    for (int64_t i = 0; i < out; ++i) taps[i].first = taps[i].second = i;
    return taps;
  }
  const double step = scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  for (int64_t i = 0; i < out; ++i) {
    UpsampleTap& tap = taps[i];
    if (mode == UpsampleMode::kNearest) {
      // PyTorch uses single precision here for every type of image.
      const float place = static_cast<float>(i) * static_cast<float>(step);
      tap.first = tap.second = std::min(static_cast<int64_t>(std::floor(place)), in - 1);
      continue;
    }
    double place = 0;
    if (!align_corners) {
      place = std::max(0.0, (static_cast<double>(i) + 0.5) * step - 0.5);
    } else if (out > 1) {
      place = static_cast<double>(i) * (static_cast<double>(in - 1) / static_cast<double>(out - 1));
    }
    tap.first = std::min(static_cast<int64_t>(place), in - 1);
    tap.second = std::min(tap.first + 1, in - 1);
    tap.share = std::clamp(place - static_cast<double>(tap.first), 0.0, 1.0);
  }
  return taps;
}

absl::StatusOr<std::vector<TensorType>> UpsampleOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_ASSIGN_OR_RETURN(Shape y, ResizedShape(*this, inputs, rule, inputs[0].shape));
  return std::vector<TensorType>{{inputs[0].dtype, std::move(y)}};
}

absl::StatusOr<std::vector<ValueId>> UpsampleOp::Gradient(Graph& graph, const Node& node,
                                                          absl::Span<const ValueId> grad_outputs,
                                                          const std::vector<bool>& wanted) const {
  return GradientOfFirst(graph, wanted,
                         std::make_shared<UpsampleGradOp>(rule, graph.value(node.inputs[0]).shape),
                         {grad_outputs[0]});
}

OpCost UpsampleOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), rule, outputs[0].shape);
}

std::string UpsampleGradOp::attributes() const {
  return absl::StrCat(rule.ToString(), " input_shape=", input_shape.ToString());
}

absl::StatusOr<std::vector<TensorType>> UpsampleGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_ASSIGN_OR_RETURN(const Shape y, ResizedShape(*this, inputs, rule, input_shape));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 0, y));
  return std::vector<TensorType>{{inputs[0].dtype, input_shape}};
}

OpCost UpsampleGradOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), rule, inputs[0].shape);
}

}  // namespace tandem
