#include "engine/graph/ops/pad.h"

#include <algorithm>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {

absl::Status Pad2d(const KernelCall& call) {
  const Size2d before = call.op<Pad2dOp>().margins.before;
  const Image x(call.inputs[0]);
  const Image y(call.outputs[0]);
  std::ranges::fill(Numbers(call.outputs[0]), 0.0);
  ForEachPixel(x, [&](int64_t n, int64_t c, int64_t row, int64_t column) {
    y.at(n, c, row + before.h, column + before.w) = x.at(n, c, row, column);
  });
  return absl::OkStatus();
}

absl::Status Crop2d(const KernelCall& call) {
  const Size2d before = call.op<Crop2dOp>().margins.before;
  const Image x(call.inputs[0]);
  const Image y(call.outputs[0]);
  ForEachPixel(y, [&](int64_t n, int64_t c, int64_t row, int64_t column) {
    y.at(n, c, row, column) = x.at(n, c, row + before.h, column + before.w);
  });
  return absl::OkStatus();
}

}  // namespace tandem::reference
