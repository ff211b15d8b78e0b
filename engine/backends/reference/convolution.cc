#include <algorithm>

#include "engine/backends/reference/kernel.h"
#include "engine/graph/ops/convolution.h"

namespace tandem::reference {
namespace {

// Calls visit(n, o, y_row, y_column, c, x_row, x_column, weight_channel, weight_row, weight_column) for every
// product in the convolution of `x` by `weight` to `y`.
template <typename Visit>
void ForEachProduct(const Conv2dGeometry& geometry, const Image& x, const Image& weight, const Image& y,
                    Visit visit) {
  const int64_t filters_per_group = y.c() / geometry.groups;
  for (int64_t n = 0; n < y.n(); ++n) {
    for (int64_t o = 0; o < y.c(); ++o) {
      const int64_t first_channel = o / filters_per_group * weight.c();
      for (int64_t i = 0; i < y.h(); ++i) {
        for (int64_t j = 0; j < y.w(); ++j) {
          for (int64_t k = 0; k < weight.c(); ++k) {
            for (int64_t p = 0; p < weight.h(); ++p) {
              const int64_t row = i * geometry.stride.h - geometry.padding.h + p * geometry.dilation.h;
              for (int64_t q = 0; q < weight.w(); ++q) {
                const int64_t column = j * geometry.stride.w - geometry.padding.w + q * geometry.dilation.w;
                if (x.Contains(row, column)) visit(n, o, i, j, first_channel + k, row, column, k, p, q);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

absl::Status Conv2d(const KernelCall& call) {
  const Image x(call.inputs[0]);
  const Image weight(call.inputs[1]);
  const Image y(call.outputs[0]);
  ForEachPixel(y, [&](int64_t n, int64_t o, int64_t i, int64_t j) {
    y.at(n, o, i, j) = call.inputs.size() == 3 ? Numbers(call.inputs[2])[o] : 0;
  });
  ForEachProduct(
      call.op<Conv2dOp>().geometry, x, weight, y,
      [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t c, int64_t row, int64_t column, int64_t k,
          int64_t p, int64_t q) { y.at(n, o, i, j) += x.at(n, c, row, column) * weight.at(o, k, p, q); });
  return absl::OkStatus();
}

absl::Status Conv2dGradInput(const KernelCall& call) {
  const Image grad_y(call.inputs[0]);
  const Image weight(call.inputs[1]);
  const Image grad_x(call.outputs[0]);
  std::ranges::fill(Numbers(call.outputs[0]), 0.0);
  ForEachProduct(call.op<Conv2dGradInputOp>().geometry, grad_x, weight, grad_y,
                 [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t c, int64_t row, int64_t column,
                     int64_t k, int64_t p, int64_t q) {
                   grad_x.at(n, c, row, column) += grad_y.at(n, o, i, j) * weight.at(o, k, p, q);
                 });
  return absl::OkStatus();
}

absl::Status Conv2dGradWeight(const KernelCall& call) {
  const auto& op = call.op<Conv2dGradWeightOp>();
  const Image x(call.inputs[0]);
  const Image grad_y(call.inputs[1]);
  const Image grad_weight(call.outputs[0]);
  std::ranges::fill(Numbers(call.outputs[0]), 0.0);
  ForEachProduct(op.geometry, x, grad_weight, grad_y,
                 [&](int64_t n, int64_t o, int64_t i, int64_t j, int64_t c, int64_t row, int64_t column,
                     int64_t k, int64_t p, int64_t q) {
                   grad_weight.at(o, k, p, q) += x.at(n, c, row, column) * grad_y.at(n, o, i, j);
                 });
  if (!op.has_bias) return absl::OkStatus();
  const absl::Span<double> grad_bias = Numbers(call.outputs[1]);
  std::ranges::fill(grad_bias, 0.0);
  ForEachPixel(grad_y,
               [&](int64_t n, int64_t o, int64_t i, int64_t j) { grad_bias[o] += grad_y.at(n, o, i, j); });
  return absl::OkStatus();
}

}  // namespace tandem::reference
