#include "engine/graph/ops/pooling.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

constexpr int64_t kLargestIndexedWindow = 255;

absl::StatusOr<Shape> OutputShape(const Op& op, absl::Span<const TensorType> inputs,
                                  const PoolGeometry& geometry, const Shape& x) {
  if (x.rank() != 4) {
    return InputError(op, inputs, absl::StrCat("input ", x.ToString(), " must have 4 dimensions"));
  }
  if (geometry.padding.h > geometry.size.h / 2 || geometry.padding.w > geometry.size.w / 2) {
    return InputError(op, inputs,
                      absl::StrCat("padding is ", geometry.padding.ToString(),
                                   ", but may be at most half of the size, ", geometry.size.ToString()));
  }
  const absl::StatusOr<Size2d> windows = CountPoolWindows(geometry, {x[2], x[3]});
  if (!windows.ok()) return InputError(op, inputs, windows.status().message());
  return Shape({x[0], x[1], windows->h, windows->w});
}

// Returns the number of windows if an incomplete last window also counts.
int64_t RoundedUp(int64_t windows, int64_t image, int64_t size, int64_t stride, int64_t padding) {
  const bool rest = (windows - 1) * stride + size < image + 2 * padding;
  return windows + (rest && windows * stride < image + padding ? 1 : 0);
}

double WindowElements(const PoolGeometry& geometry) {
  return static_cast<double>(geometry.size.h) * geometry.size.w;
}

}  // namespace

std::string PoolGeometry::ToString() const {
  return absl::StrCat("size=", size.ToString(), " stride=", stride.ToString(),
                      " padding=", padding.ToString(), ceil_mode ? " ceil_mode" : "");
}

absl::StatusOr<Size2d> CountPoolWindows(const PoolGeometry& g, Size2d image) {
  TANDEM_ASSIGN_OR_RETURN(const Size2d windows, CountWindows(image, g.size, g.stride, g.padding, {1, 1}));
  if (!g.ceil_mode) return windows;
  return Size2d{RoundedUp(windows.h, image.h, g.size.h, g.stride.h, g.padding.h),
                RoundedUp(windows.w, image.w, g.size.w, g.stride.w, g.padding.w)};
}

absl::StatusOr<std::vector<TensorType>> MaxPool2dOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_ASSIGN_OR_RETURN(const Shape y, OutputShape(*this, inputs, geometry, inputs[0].shape));
  if (WindowElements(geometry) > kLargestIndexedWindow) {
    return InputError(*this, inputs,
                      absl::StrCat("a window of ", geometry.size.ToString(), " has more than ",
                                   kLargestIndexedWindow, " elements"));
  }
  return std::vector<TensorType>{{inputs[0].dtype, y}, {DType::kUInt8, y}};
}

absl::StatusOr<std::vector<ValueId>> MaxPool2dOp::Gradient(Graph& graph, const Node& node,
                                                           absl::Span<const ValueId> grad_outputs,
                                                           const std::vector<bool>& wanted) const {
  if (grad_outputs[0] == kNoValue) return std::vector<ValueId>{kNoValue};
  return GradientOfFirst(graph, wanted,
                         std::make_shared<MaxPool2dGradOp>(geometry, graph.value(node.inputs[0]).shape),
                         {grad_outputs[0], node.outputs[1]});
}

OpCost MaxPool2dOp::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), WindowElements(geometry), outputs);
}

std::string MaxPool2dGradOp::attributes() const {
  return absl::StrCat(geometry.ToString(), " input_shape=", input_shape.ToString());
}

absl::StatusOr<std::vector<TensorType>> MaxPool2dGradOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_ASSIGN_OR_RETURN(const Shape y, OutputShape(*this, inputs, geometry, input_shape));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 0, y));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 1, y));
  if (inputs[1].dtype != DType::kUInt8) return InputError(*this, inputs, "the index must be uint8");
  return std::vector<TensorType>{{inputs[0].dtype, input_shape}};
}

std::string AveragePool2dOp::attributes() const {
  return absl::StrCat(geometry.ToString(), count_include_pad ? " count_include_pad" : "");
}

absl::StatusOr<std::vector<TensorType>> AveragePool2dOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_ASSIGN_OR_RETURN(Shape y, OutputShape(*this, inputs, geometry, inputs[0].shape));
  return std::vector<TensorType>{{inputs[0].dtype, std::move(y)}};
}

absl::StatusOr<std::vector<ValueId>> AveragePool2dOp::Gradient(Graph& graph, const Node& node,
                                                               absl::Span<const ValueId> grad_outputs,
                                                               const std::vector<bool>& wanted) const {
  return GradientOfFirst(
      graph, wanted,
      std::make_shared<AveragePool2dGradOp>(geometry, count_include_pad, graph.value(node.inputs[0]).shape),
      {grad_outputs[0]});
}

OpCost AveragePool2dOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), WindowElements(geometry), outputs);
}

std::string AveragePool2dGradOp::attributes() const {
  return absl::StrCat(geometry.ToString(), count_include_pad ? " count_include_pad" : "",
                      " input_shape=", input_shape.ToString());
}

absl::StatusOr<std::vector<TensorType>> AveragePool2dGradOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 1, 1));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, 0));
  TANDEM_ASSIGN_OR_RETURN(const Shape y, OutputShape(*this, inputs, geometry, input_shape));
  TANDEM_RETURN_IF_ERROR(CheckShape(*this, inputs, 0, y));
  return std::vector<TensorType>{{inputs[0].dtype, input_shape}};
}

OpCost AveragePool2dGradOp::Cost(absl::Span<const TensorType> inputs,
                                 absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), WindowElements(geometry), inputs);
}

}  // namespace tandem
