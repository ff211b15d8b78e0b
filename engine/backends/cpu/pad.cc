#include "engine/backends/cpu/pad.h"

#include <algorithm>

#include "engine/backends/cpu/lanes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/pad.h"

namespace tandem::cpu {
namespace {

// Copies x into the middle of y, or the middle of x to y.
absl::Status LowerCopy(Lowering& lowering, const Node& node, Size2d before, bool pads) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Lanes lanes = LanesOf(home.layout);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], lanes.LayoutOf(x_shape)));
  const Region y = lowering.Define(node.outputs[0], lanes.LayoutOf(y_shape));
  const int64_t planes = lanes.blocks * x_shape[1];
  const int64_t x_row = x_shape[3] * lanes.lanes;
  const int64_t y_row = y_shape[3] * lanes.lanes;
  const int64_t x_plane = x_shape[2] * x_row;
  const int64_t y_plane = y_shape[2] * y_row;
  const int64_t rows = std::min(x_shape[2], y_shape[2]);
  const int64_t copied = std::min(x_row, y_row);
  const int64_t corner = before.h * (pads ? y_row : x_row) + before.w * lanes.lanes;
  lowering.Emit(
      {.name = pads ? "pad2d" : "crop2d", .reads = {x}, .writes = {y}, .run = [=](const RunContext& run) {
         run.team->For(planes, [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) {
             const float* from = run.At<const float>(x) + i * x_plane + (pads ? 0 : corner);
             float* to = run.At<float>(y) + i * y_plane;
             if (pads) std::fill_n(to, y_plane, 0.0f);
             to += pads ? corner : 0;
             for (int64_t row = 0; row < rows; ++row) {
               std::copy_n(from + row * x_row, copied, to + row * y_row);
             }
           }
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerPad(Lowering& lowering, const Node& node) {
  return LowerCopy(lowering, node, static_cast<const Pad2dOp&>(*node.op).margins.before, /*pads=*/true);
}

absl::Status LowerCrop(Lowering& lowering, const Node& node) {
  return LowerCopy(lowering, node, static_cast<const Crop2dOp&>(*node.op).margins.before, /*pads=*/false);
}

}  // namespace tandem::cpu
