#include <algorithm>

#include "engine/backends/reference/kernel.h"
#include "engine/graph/ops/linear.h"

namespace tandem::reference {
namespace {

// The rows of a tensor [..., columns].
struct Rows {
  explicit Rows(Tensor* tensor)
      : numbers(Numbers(tensor)), columns(tensor->shape()[-1]), count(tensor->elements() / columns) {}
  double& at(int64_t row, int64_t column) const { return numbers[row * columns + column]; }
  absl::Span<double> numbers;
  int64_t columns;
  int64_t count;
};

}  // namespace

absl::Status Linear(const KernelCall& call) {
  const Rows x(call.inputs[0]);
  const Rows weight(call.inputs[1]);
  const Rows y(call.outputs[0]);
  for (int64_t n = 0; n < y.count; ++n) {
    for (int64_t o = 0; o < y.columns; ++o) {
      double sum = call.inputs.size() == 3 ? Numbers(call.inputs[2])[o] : 0;
      for (int64_t f = 0; f < x.columns; ++f) sum += x.at(n, f) * weight.at(o, f);
      y.at(n, o) = sum;
    }
  }
  return absl::OkStatus();
}

absl::Status LinearGradInput(const KernelCall& call) {
  const Rows grad_y(call.inputs[0]);
  const Rows weight(call.inputs[1]);
  const Rows grad_x(call.outputs[0]);
  for (int64_t n = 0; n < grad_x.count; ++n) {
    for (int64_t f = 0; f < grad_x.columns; ++f) {
      double sum = 0;
      for (int64_t o = 0; o < grad_y.columns; ++o) sum += grad_y.at(n, o) * weight.at(o, f);
      grad_x.at(n, f) = sum;
    }
  }
  return absl::OkStatus();
}

absl::Status LinearGradWeight(const KernelCall& call) {
  const Rows x(call.inputs[0]);
  const Rows grad_y(call.inputs[1]);
  const Rows grad_weight(call.outputs[0]);
  for (int64_t o = 0; o < grad_y.columns; ++o) {
    for (int64_t f = 0; f < x.columns; ++f) {
      double sum = 0;
      for (int64_t n = 0; n < x.count; ++n) sum += grad_y.at(n, o) * x.at(n, f);
      grad_weight.at(o, f) = sum;
    }
  }
  if (!call.op<LinearGradWeightOp>().has_bias) return absl::OkStatus();
  const absl::Span<double> grad_bias = Numbers(call.outputs[1]);
  std::ranges::fill(grad_bias, 0.0);
  for (int64_t n = 0; n < grad_y.count; ++n) {
    for (int64_t o = 0; o < grad_y.columns; ++o) grad_bias[o] += grad_y.at(n, o);
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
