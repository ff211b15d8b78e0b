// Images that get margins, lose them, or are resized.

#include "engine/backends/cuda/kernels/resample.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/device_table.h"
#include "engine/backends/cuda/image.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/pad.h"
#include "engine/graph/ops/upsample.h"

namespace tandem::cuda {
namespace {

// Moves the image so that its corner is at `corner` of the result.
absl::Status LowerShift(Lowering& lowering, const Node& node, Size2d corner) {
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const DType type = home.layout.dtype();
  const bool last = MakesChannelsLast(lowering, home.layout, node.outputs[0]);
  const ImageSizes x_sizes = ImageSizesOf(x_shape, last);
  const ImageSizes y_sizes = ImageSizesOf(y_shape, last);
  const int top = static_cast<int>(corner.h);
  const int left = static_cast<int>(corner.w);
  const Region x = home.region;
  const Region y = lowering.Define(node.outputs[0], ImageLayout(type, y_shape, last));
  lowering.Emit(
      {.name = std::string(node.op->kind()), .reads = {x}, .writes = {y}, .run = [=](const RunContext& run) {
         Shift(x_sizes, y_sizes, top, left, static_cast<int>(SizeOf(type)), run.At(x), run.At(y), run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerPad(Lowering& lowering, const Node& node) {
  return LowerShift(lowering, node, static_cast<const Pad2dOp&>(*node.op).margins.before);
}

absl::Status LowerCrop(Lowering& lowering, const Node& node) {
  const Size2d before = static_cast<const Crop2dOp&>(*node.op).margins.before;
  return LowerShift(lowering, node, {-before.h, -before.w});
}

// The taps of an image's rows, then of its columns. For the gradient also the readers of its rows and
// columns.
struct ResizeTables {
  ResizeTables(std::vector<ResizeTap> taps, std::vector<TapRange> ranges)
      : taps(std::move(taps)), ranges(std::move(ranges)) {}

  absl::Status Upload(Stream stream) {
    TANDEM_RETURN_IF_ERROR(taps.Upload(stream));
    return ranges.Upload(stream);
  }

  DeviceTable<ResizeTap> taps;
  DeviceTable<TapRange> ranges;
};

void AddTaps(const std::vector<UpsampleTap>& taps, int64_t in, std::vector<ResizeTap>& all,
             std::vector<TapRange>& ranges) {
  const auto count = static_cast<int>(taps.size());
  std::vector<TapRange> readers(in, {count, 0});
  for (int i = 0; i < count; ++i) {
    const UpsampleTap& tap = taps[i];
    all.push_back({static_cast<int>(tap.first), static_cast<int>(tap.second), static_cast<float>(tap.share)});
    for (const int64_t from : {tap.first, tap.second}) {
      readers[from].begin = std::min(readers[from].begin, i);
      readers[from].end = i + 1;
    }
  }
  ranges.insert(ranges.end(), readers.begin(), readers.end());
}

// From the node's input to its output. `x` is the shape of the resized image.
absl::Status LowerResize(Lowering& lowering, const Node& node, const UpsampleRule& rule, const Shape& x,
                         const Shape& y, decltype(Resize)* kernel) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const DType type = home.layout.dtype();
  const bool last = MakesChannelsLast(lowering, home.layout, node.outputs[0]);
  std::vector<ResizeTap> taps;
  std::vector<TapRange> ranges;
  AddTaps(UpsampleTaps(rule.mode, rule.align_corners, x[2], y[2], rule.scale_h), x[2], taps, ranges);
  AddTaps(UpsampleTaps(rule.mode, rule.align_corners, x[3], y[3], rule.scale_w), x[3], taps, ranges);
  const auto tables = std::make_shared<ResizeTables>(std::move(taps), std::move(ranges));
  const Resizing sizes = {.x = ImageSizesOf(x, last), .y = ImageSizesOf(y, last)};
  const Region from = home.region;
  const Region to =
      lowering.Define(node.outputs[0], ImageLayout(type, lowering.shape(node.outputs[0]), last));
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = {from},
                 .writes = {to},
                 .run =
                     [=](const RunContext& run) {
                       Resizing how = sizes;
                       how.rows = tables->taps.data();
                       how.columns = how.rows + sizes.y.height;
                       how.row_ranges = tables->ranges.data();
                       how.column_ranges = how.row_ranges + sizes.x.height;
                       kernel(how, type, run.At(from), run.At(to), run.stream);
                       return absl::OkStatus();
                     },
                 .bind = [tables](const RunContext& run) { return tables->Upload(run.stream); }});
  return absl::OkStatus();
}

absl::Status LowerUpsample(Lowering& lowering, const Node& node) {
  return LowerResize(lowering, node, static_cast<const UpsampleOp&>(*node.op).rule,
                     lowering.shape(node.inputs[0]), lowering.shape(node.outputs[0]), Resize);
}

absl::Status LowerUpsampleGrad(Lowering& lowering, const Node& node) {
  return LowerResize(lowering, node, static_cast<const UpsampleGradOp&>(*node.op).rule,
                     lowering.shape(node.outputs[0]), lowering.shape(node.inputs[0]), ResizeGrad);
}

}  // namespace

absl::Span<const Offered> ResampleOps() {
  static constexpr Offered kOps[] = {
      {"crop2d", LowerCrop},
      {"pad2d", LowerPad},
      {"upsample", LowerUpsample},
      {"upsample_grad", LowerUpsampleGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
