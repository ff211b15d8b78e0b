#include "engine/graph/ops/lstm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// A tensor [N, L, width], row by row.
class Steps {
 public:
  explicit Steps(Tensor* tensor)
      : numbers_(Numbers(tensor)), length_(tensor->shape()[1]), width_(tensor->shape()[2]) {}
  absl::Span<double> at(int64_t sample, int64_t position) const {
    return numbers_.subspan((sample * length_ + position) * width_, width_);
  }

 private:
  absl::Span<double> numbers_;
  int64_t length_;
  int64_t width_;
};

// Returns row `sample` of a tensor [N, H].
absl::Span<double> State(Tensor* tensor, int64_t sample) {
  const int64_t units = tensor->shape()[1];
  return Numbers(tensor).subspan(sample * units, units);
}

void Copy(absl::Span<const double> from, absl::Span<double> to) { std::ranges::copy(from, to.begin()); }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

absl::Status Lstm(const KernelCall& call) {
  const Steps projected(call.inputs[0]);
  const absl::Span<const double> weight = Numbers(call.inputs[3]);
  const absl::Span<const double> bias = Numbers(call.inputs[4]);
  const Steps y(call.outputs[0]);
  const Steps all_gates(call.outputs[3]);
  const Steps cells(call.outputs[4]);
  const Shape& shape = call.outputs[0]->shape();
  const int64_t length = shape[1];
  const int64_t units = shape[2];
  for (int64_t n = 0; n < shape[0]; ++n) {
    absl::Span<double> h = State(call.inputs[1], n);
    absl::Span<double> c = State(call.inputs[2], n);
    for (int64_t step = 0; step < length; ++step) {
      const int64_t l = call.op<LstmOp>().reverse ? length - 1 - step : step;
      const absl::Span<double> gates = all_gates.at(n, l);
      for (int64_t k = 0; k < 4 * units; ++k) {
        double sum = projected.at(n, l)[k] + bias[k];
        for (int64_t u = 0; u < units; ++u) sum += weight[k * units + u] * h[u];
        gates[k] = k / units == 2 ? std::tanh(sum) : Sigmoid(sum);
      }
      for (int64_t u = 0; u < units; ++u) {
        cells.at(n, l)[u] = gates[units + u] * c[u] + gates[u] * gates[2 * units + u];
        y.at(n, l)[u] = gates[3 * units + u] * std::tanh(cells.at(n, l)[u]);
      }
      h = y.at(n, l);
      c = cells.at(n, l);
    }
    Copy(h, State(call.outputs[1], n));
    Copy(c, State(call.outputs[2], n));
  }
  return absl::OkStatus();
}

absl::Status LstmGrad(const KernelCall& call) {
  const absl::Span<const double> weight = Numbers(call.inputs[0]);
  const Steps y(call.inputs[3]);
  const Steps all_gates(call.inputs[4]);
  const Steps cells(call.inputs[5]);
  const Steps grad_y(call.inputs[6]);
  const Steps all_grads(call.outputs[0]);
  const Steps all_before(call.outputs[3]);
  const Shape& shape = call.inputs[3]->shape();
  const int64_t length = shape[1];
  const int64_t units = shape[2];
  for (int64_t n = 0; n < shape[0]; ++n) {
    const absl::Span<double> grad_h = State(call.outputs[1], n);
    const absl::Span<double> grad_c = State(call.outputs[2], n);
    Copy(State(call.inputs[7], n), grad_h);
    Copy(State(call.inputs[8], n), grad_c);
    for (int64_t step = length - 1; step >= 0; --step) {
      const bool reverse = call.op<LstmGradOp>().reverse;
      const int64_t l = reverse ? length - 1 - step : step;
      const int64_t before = reverse ? l + 1 : l - 1;
      const absl::Span<const double> h = step == 0 ? State(call.inputs[1], n) : y.at(n, before);
      const absl::Span<const double> c = step == 0 ? State(call.inputs[2], n) : cells.at(n, before);
      Copy(h, all_before.at(n, l));
      const absl::Span<const double> gates = all_gates.at(n, l);
      const absl::Span<double> grads = all_grads.at(n, l);
      for (int64_t u = 0; u < units; ++u) {
        const double i = gates[u];
        const double f = gates[units + u];
        const double g = gates[2 * units + u];
        const double o = gates[3 * units + u];
        const double squashed = std::tanh(cells.at(n, l)[u]);
        const double dh = grad_h[u] + grad_y.at(n, l)[u];
        const double dc = grad_c[u] + dh * o * (1 - squashed * squashed);
        grads[u] = dc * g * i * (1 - i);
        grads[units + u] = dc * c[u] * f * (1 - f);
        grads[2 * units + u] = dc * i * (1 - g * g);
        grads[3 * units + u] = dh * squashed * o * (1 - o);
        grad_c[u] = dc * f;
      }
      std::ranges::fill(grad_h, 0.0);
      for (int64_t k = 0; k < 4 * units; ++k) {
        for (int64_t u = 0; u < units; ++u) grad_h[u] += grads[k] * weight[k * units + u];
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
