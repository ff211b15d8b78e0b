#include "engine/graph/ops/upsample.h"

#include <algorithm>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// Calls visit(row, column, source_row, source_column, share) for every product of a plane.
template <typename Visit>
void ForEachShare(const UpsampleRule& rule, const Image& x, const Image& y, Visit visit) {
  const auto rows = UpsampleTaps(rule.mode, rule.align_corners, x.h(), y.h(), rule.scale_h);
  const auto columns = UpsampleTaps(rule.mode, rule.align_corners, x.w(), y.w(), rule.scale_w);
  for (int64_t i = 0; i < y.h(); ++i) {
    for (int64_t j = 0; j < y.w(); ++j) {
      visit(i, j, rows[i].first, columns[j].first, (1 - rows[i].share) * (1 - columns[j].share));
      visit(i, j, rows[i].first, columns[j].second, (1 - rows[i].share) * columns[j].share);
      visit(i, j, rows[i].second, columns[j].first, rows[i].share * (1 - columns[j].share));
      visit(i, j, rows[i].second, columns[j].second, rows[i].share * columns[j].share);
    }
  }
}

}  // namespace

absl::Status Upsample(const KernelCall& call) {
  const Image x(call.inputs[0]);
  const Image y(call.outputs[0]);
  std::ranges::fill(Numbers(call.outputs[0]), 0.0);
  ForEachShare(call.op<UpsampleOp>().rule, x, y,
               [&](int64_t i, int64_t j, int64_t row, int64_t column, double share) {
                 if (share == 0) return;
                 for (int64_t n = 0; n < y.n(); ++n) {
                   for (int64_t c = 0; c < y.c(); ++c) y.at(n, c, i, j) += share * x.at(n, c, row, column);
                 }
               });
  return absl::OkStatus();
}

absl::Status UpsampleGrad(const KernelCall& call) {
  const Image grad_y(call.inputs[0]);
  const Image grad_x(call.outputs[0]);
  std::ranges::fill(Numbers(call.outputs[0]), 0.0);
  ForEachShare(call.op<UpsampleGradOp>().rule, grad_x, grad_y,
               [&](int64_t i, int64_t j, int64_t row, int64_t column, double share) {
                 if (share == 0) return;
                 for (int64_t n = 0; n < grad_y.n(); ++n) {
                   for (int64_t c = 0; c < grad_y.c(); ++c) {
                     grad_x.at(n, c, row, column) += share * grad_y.at(n, c, i, j);
                   }
                 }
               });
  return absl::OkStatus();
}

}  // namespace tandem::reference
