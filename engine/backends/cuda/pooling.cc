#include "engine/backends/cuda/kernels/pooling.h"

#include <utility>
#include <vector>

#include "engine/backends/cuda/image.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/pooling.h"

namespace tandem::cuda {
namespace {

PoolSizes SizesOf(const PoolGeometry& g, const Shape& x, const Shape& y, bool channels_last) {
  return {.x = ImageSizesOf(x, channels_last),
          .out_height = static_cast<int>(y[2]),
          .out_width = static_cast<int>(y[3]),
          .window_height = static_cast<int>(g.size.h),
          .window_width = static_cast<int>(g.size.w),
          .stride_height = static_cast<int>(g.stride.h),
          .stride_width = static_cast<int>(g.stride.w),
          .padding_height = static_cast<int>(g.padding.h),
          .padding_width = static_cast<int>(g.padding.w)};
}

absl::Status LowerMaxPool(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const DType type = home.layout.dtype();
  const bool last = home.layout.channels_last();
  PoolSizes sizes = SizesOf(static_cast<const MaxPool2dOp&>(*node.op).geometry, x_shape, y_shape, last);
  // The output is plain if a reshape flattens it next.
  sizes.plain_y = last && IsFlattened(lowering, node.outputs[0]);
  const Region x = home.region;
  const Region y = lowering.Define(node.outputs[0], ImageLayout(type, y_shape, last && !sizes.plain_y));
  const Region index = lowering.Define(node.outputs[1], ImageLayout(DType::kUInt8, y_shape, last));
  lowering.Emit({.name = "max_pool2d", .reads = {x}, .writes = {y, index}, .run = [=](const RunContext& run) {
                   MaxPool(sizes, type, run.At(x), run.At(y), run.At<uint8_t>(index), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerMaxPoolGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.outputs[0]);
  const Shape& y_shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place dy_home, lowering.HomeAsMade(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place index_home, lowering.HomeAsMade(node.inputs[1]));
  const DType type = dy_home.layout.dtype();
  const bool last = MakesChannelsLast(lowering, index_home.layout, node.outputs[0]);
  PoolSizes sizes = SizesOf(static_cast<const MaxPool2dGradOp&>(*node.op).geometry, x_shape, y_shape, last);
  const Layout dy_layout = ImageLayout(type, y_shape, last);
  sizes.plain_y = dy_layout.channels_last() && dy_home.layout.plain();
  const Layout& read_as = sizes.plain_y ? dy_home.layout : dy_layout;
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[0], read_as));
  TANDEM_ASSIGN_OR_RETURN(const Region index,
                          lowering.Get(node.inputs[1], ImageLayout(DType::kUInt8, y_shape, last)));
  const Region dx = lowering.Define(node.outputs[0], ImageLayout(type, x_shape, last));
  lowering.Emit(
      {.name = "max_pool2d_grad", .reads = {index, dy}, .writes = {dx}, .run = [=](const RunContext& run) {
         MaxPoolGrad(sizes, type, run.At<uint8_t>(index), run.At(dy), run.At(dx), run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerAveragePool(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const AveragePool2dOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  const DType type = home.layout.dtype();
  const bool last = home.layout.channels_last();
  PoolSizes sizes = SizesOf(op.geometry, lowering.shape(node.inputs[0]), y_shape, last);
  sizes.count_padding = op.count_include_pad;
  sizes.plain_y = last && IsFlattened(lowering, node.outputs[0]);
  const Region x = home.region;
  const Region y = lowering.Define(node.outputs[0], ImageLayout(type, y_shape, last && !sizes.plain_y));
  lowering.Emit({.name = "average_pool2d", .reads = {x}, .writes = {y}, .run = [=](const RunContext& run) {
                   AveragePool(sizes, type, run.At(x), run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerAveragePoolGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const AveragePool2dGradOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.outputs[0]);
  const DType type = home.layout.dtype();
  const bool last = home.layout.channels_last() || IsWantedChannelsLast(lowering, node.outputs[0]);
  const Shape& y_shape = lowering.shape(node.inputs[0]);
  PoolSizes sizes = SizesOf(op.geometry, x_shape, y_shape, last);
  sizes.count_padding = op.count_include_pad;
  sizes.plain_y = ImageLayout(type, y_shape, last).channels_last() && home.layout.plain();
  const Region dy = home.region;
  const Region dx = lowering.Define(node.outputs[0], ImageLayout(type, x_shape, last));
  lowering.Emit(
      {.name = "average_pool2d_grad", .reads = {dy}, .writes = {dx}, .run = [=](const RunContext& run) {
         AveragePoolGrad(sizes, type, run.At(dy), run.At(dx), run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> PoolingOps() {
  static constexpr Offered kOps[] = {
      {"average_pool2d", LowerAveragePool},
      {"average_pool2d_grad", LowerAveragePoolGrad},
      {"max_pool2d", LowerMaxPool},
      {"max_pool2d_grad", LowerMaxPoolGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
