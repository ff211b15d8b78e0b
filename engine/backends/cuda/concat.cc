// Tensors that are joined or split.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/rows.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/heads.h"

namespace tandem::cuda {
namespace {

Layout LayoutLike(bool channels_last, DType type, const Shape& shape) {
  return channels_last ? Layout::ChannelsLast(type, shape) : Layout::Plain(type, shape);
}

// The number of rows along an axis in the tensor's layout, and the number of elements for an index of the
// axis.
struct Along {
  int64_t outer = 1;
  int64_t inner = 1;
};
Along AlongAxis(const Shape& shape, int axis, bool channels_last) {
  std::vector<int> order;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!channels_last || i != 1) order.push_back(i);
  }
  if (channels_last) order.push_back(1);
  Along along;
  bool behind = false;
  for (const int i : order) {
    if (i == axis) {
      behind = true;
    } else {
      (behind ? along.inner : along.outer) *= shape[i];
    }
  }
  return along;
}

absl::Status LowerConcat(Lowering& lowering, const Node& node) {
  const int axis = static_cast<const ConcatOp&>(*node.op).axis;
  const Shape& shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place first, lowering.HomeAsMade(node.inputs[0]));
  DType type = first.layout.dtype();
  bool last = false;
  for (const ValueId input : node.inputs) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(input));
    // A narrow type if all inputs have it.
    if (home.layout.dtype() != type) type = DType::kFloat32;
    last = last || home.layout.channels_last();
  }
  const Along along = AlongAxis(shape, axis, last);
  const int64_t step_bytes = along.inner * SizeOf(type);
  struct Part {
    Region x;
    RowCopy copy;
    int64_t offset;
  };
  std::vector<Part> parts;
  std::vector<Region> reads;
  int64_t offset = 0;
  for (const ValueId input : node.inputs) {
    const Shape& part = lowering.shape(input);
    TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(input, LayoutLike(last, type, part)));
    const int64_t bytes = part[axis] * step_bytes;
    parts.push_back({x,
                     {.row_bytes = bytes,
                      .extents = {along.outer, 1, 1},
                      .x_strides = {bytes, 0, 0},
                      .y_strides = {shape[axis] * step_bytes, 0, 0}},
                     offset});
    reads.push_back(x);
    offset += bytes;
  }
  const Region y = lowering.Define(node.outputs[0], LayoutLike(last, type, shape));
  lowering.Emit(
      {.name = "concat", .reads = std::move(reads), .writes = {y}, .run = [=](const RunContext& run) {
         for (const Part& part : parts) {
           CopyRows(part.copy, run.At(part.x), run.At<std::byte>(y) + part.offset, run.stream);
         }
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerSplit(Lowering& lowering, const Node& node) {
  const int axis = static_cast<const SplitOp&>(*node.op).axis;
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const DType type = home.layout.dtype();
  const bool last = home.layout.channels_last();
  const Along along = AlongAxis(shape, axis, last);
  const int64_t step_bytes = along.inner * SizeOf(type);
  const Region x = home.region;
  int64_t offset = 0;
  for (const ValueId output : node.outputs) {
    const Shape& part = lowering.shape(output);
    const int64_t bytes = part[axis] * step_bytes;
    const RowCopy copy = {.row_bytes = bytes,
                          .extents = {along.outer, 1, 1},
                          .x_strides = {shape[axis] * step_bytes, 0, 0},
                          .y_strides = {bytes, 0, 0}};
    const Region y = lowering.Define(output, LayoutLike(last, type, part));
    lowering.Emit({.name = "split", .reads = {x}, .writes = {y}, .run = [=](const RunContext& run) {
                     CopyRows(copy, run.At<std::byte>(x) + offset, run.At(y), run.stream);
                     return absl::OkStatus();
                   }});
    offset += bytes;
  }
  return absl::OkStatus();
}

// The copy between a part [N, H, L, D] and the tensor [N, L, P H D] that joins all `parts`. The part has the
// strides of y.
RowCopy CopyOfHeads(const Shape& part, int64_t parts, DType type) {
  const int64_t heads = part[1];
  const int64_t length = part[2];
  const int64_t row = part[3] * SizeOf(type);
  return {.row_bytes = row,
          .extents = {part[0], heads, length},
          .x_strides = {length * parts * heads * row, row, parts * heads * row},
          .y_strides = {heads * length * row, length * row, row}};
}

absl::Status LowerSplitHeads(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  const DType type = home.layout.dtype();
  TANDEM_ASSIGN_OR_RETURN(const Region x,
                          lowering.Get(node.inputs[0], Layout::Plain(type, home.layout.shape())));
  const Shape& part = lowering.shape(node.outputs[0]);
  const RowCopy copy = CopyOfHeads(part, static_cast<int64_t>(node.outputs.size()), type);
  int64_t offset = 0;
  for (const ValueId output : node.outputs) {
    const Region y = lowering.Define(output, Layout::Plain(type, part));
    lowering.Emit({.name = "split_heads", .reads = {x}, .writes = {y}, .run = [=](const RunContext& run) {
                     CopyRows(copy, run.At<std::byte>(x) + offset, run.At(y), run.stream);
                     return absl::OkStatus();
                   }});
    offset += part[1] * copy.row_bytes;
  }
  return absl::OkStatus();
}

absl::Status LowerMergeHeads(Lowering& lowering, const Node& node) {
  const Shape& part = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place first, lowering.HomeAsMade(node.inputs[0]));
  DType type = first.layout.dtype();
  for (const ValueId input : node.inputs) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(input));
    if (home.layout.dtype() != type) type = DType::kFloat32;
  }
  std::vector<Region> parts;
  for (const ValueId input : node.inputs) {
    TANDEM_ASSIGN_OR_RETURN(parts.emplace_back(), lowering.Get(input, Layout::Plain(type, part)));
  }
  RowCopy copy = CopyOfHeads(part, static_cast<int64_t>(parts.size()), type);
  std::swap(copy.x_strides, copy.y_strides);
  const int64_t part_bytes = part[1] * copy.row_bytes;
  const Region y = lowering.Define(node.outputs[0], Layout::Plain(type, lowering.shape(node.outputs[0])));
  lowering.Emit({.name = "merge_heads", .reads = parts, .writes = {y}, .run = [=](const RunContext& run) {
                   for (size_t p = 0; p < parts.size(); ++p) {
                     CopyRows(copy, run.At(parts[p]),
                              run.At<std::byte>(y) + static_cast<int64_t>(p) * part_bytes, run.stream);
                   }
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> ConcatOps() {
  static constexpr Offered kOps[] = {
      {"concat", LowerConcat},
      {"merge_heads", LowerMergeHeads},
      {"split", LowerSplit},
      {"split_heads", LowerSplitHeads},
  };
  return kOps;
}

}  // namespace tandem::cuda
