#include <algorithm>
#include <cmath>

#include "engine/backends/reference/kernel.h"
#include "engine/graph/ops/pooling.h"

namespace tandem::reference {
namespace {

// Calls visit(x_row, x_column, place) for every element of the window (i, j) within the image.
template <typename Visit>
void ForEachElement(const PoolGeometry& geometry, const Image& x, int64_t i, int64_t j, Visit visit) {
  for (int64_t p = 0; p < geometry.size.h; ++p) {
    for (int64_t q = 0; q < geometry.size.w; ++q) {
      const int64_t row = i * geometry.stride.h - geometry.padding.h + p;
      const int64_t column = j * geometry.stride.w - geometry.padding.w + q;
      if (x.Contains(row, column)) visit(row, column, p * geometry.size.w + q);
    }
  }
}

double Divisor(const PoolGeometry& geometry, bool count_include_pad, const Image& x, int64_t i, int64_t j) {
  if (count_include_pad) {
    // Elements beyond the padding do not count.
    const int64_t rows = x.h() + 2 * geometry.padding.h - i * geometry.stride.h;
    const int64_t columns = x.w() + 2 * geometry.padding.w - j * geometry.stride.w;
    return static_cast<double>(std::min(geometry.size.h, rows) * std::min(geometry.size.w, columns));
  }
  double count = 0;
  ForEachElement(geometry, x, i, j, [&count](int64_t, int64_t, int64_t) { ++count; });
  return count;
}

}  // namespace

absl::Status MaxPool2d(const KernelCall& call) {
  const PoolGeometry& geometry = call.op<MaxPool2dOp>().geometry;
  const Image x(call.inputs[0]);
  const Image y(call.outputs[0]);
  uint8_t* index = call.outputs[1]->data<uint8_t>().data();
  ForEachPixel(y, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    bool first = true;
    double largest = 0;
    int64_t largest_place = 0;
    ForEachElement(geometry, x, i, j, [&](int64_t row, int64_t column, int64_t place) {
      const double number = x.at(n, c, row, column);
      if (first || number > largest || std::isnan(number)) {
        largest = number;
        largest_place = place;
      }
      first = false;
    });
    y.at(n, c, i, j) = largest;
    *index++ = static_cast<uint8_t>(largest_place);
  });
  return absl::OkStatus();
}

absl::Status MaxPool2dGrad(const KernelCall& call) {
  const PoolGeometry& geometry = call.op<MaxPool2dGradOp>().geometry;
  const Image grad_y(call.inputs[0]);
  const Image grad_x(call.outputs[0]);
  const uint8_t* index = call.inputs[1]->data<uint8_t>().data();
  std::ranges::fill(Numbers(call.outputs[0]), 0.0);
  ForEachPixel(grad_y, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    const int64_t largest_place = *index++;
    ForEachElement(geometry, grad_x, i, j, [&](int64_t row, int64_t column, int64_t place) {
      if (place == largest_place) grad_x.at(n, c, row, column) += grad_y.at(n, c, i, j);
    });
  });
  return absl::OkStatus();
}

absl::Status AveragePool2d(const KernelCall& call) {
  const auto& op = call.op<AveragePool2dOp>();
  const Image x(call.inputs[0]);
  const Image y(call.outputs[0]);
  ForEachPixel(y, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    double sum = 0;
    ForEachElement(op.geometry, x, i, j,
                   [&](int64_t row, int64_t column, int64_t) { sum += x.at(n, c, row, column); });
    y.at(n, c, i, j) = sum / Divisor(op.geometry, op.count_include_pad, x, i, j);
  });
  return absl::OkStatus();
}

absl::Status AveragePool2dGrad(const KernelCall& call) {
  const auto& op = call.op<AveragePool2dGradOp>();
  const Image grad_y(call.inputs[0]);
  const Image grad_x(call.outputs[0]);
  std::ranges::fill(Numbers(call.outputs[0]), 0.0);
  ForEachPixel(grad_y, [&](int64_t n, int64_t c, int64_t i, int64_t j) {
    const double part = grad_y.at(n, c, i, j) / Divisor(op.geometry, op.count_include_pad, grad_x, i, j);
    ForEachElement(op.geometry, grad_x, i, j,
                   [&](int64_t row, int64_t column, int64_t) { grad_x.at(n, c, row, column) += part; });
  });
  return absl::OkStatus();
}

}  // namespace tandem::reference
