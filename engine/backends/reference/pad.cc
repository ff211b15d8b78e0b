#include "engine/graph/ops/pad.h"

#include <algorithm>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// Calls visit(n, c, row, column) for every pixel.
template <typename Visit>
void ForEachPixel(const Image& image, Visit visit) {
  for (int64_t n = 0; n < image.n(); ++n) {
    for (int64_t c = 0; c < image.c(); ++c) {
      for (int64_t row = 0; row < image.h(); ++row) {
        for (int64_t column = 0; column < image.w(); ++column) visit(n, c, row, column);
      }
    }
  }
}

}  // namespace

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
