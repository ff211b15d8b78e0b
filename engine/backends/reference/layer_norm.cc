#include "engine/graph/ops/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {

absl::Status LayerNorm(const KernelCall& call) {
  const absl::Span<const double> weight = Numbers(call.inputs[1]);
  const absl::Span<const double> bias = Numbers(call.inputs[2]);
  const size_t count = weight.size();
  const int64_t rows = call.outputs[1]->elements();
  for (int64_t row = 0; row < rows; ++row) {
    const absl::Span<const double> x = Numbers(call.inputs[0]).subspan(row * count, count);
    const absl::Span<double> y = Numbers(call.outputs[0]).subspan(row * count, count);
    double mean = 0;
    for (const double number : x) mean += number / count;
    double variance = 0;
    for (const double number : x) variance += (number - mean) * (number - mean) / count;
    const double factor = 1 / std::sqrt(variance + call.op<LayerNormOp>().epsilon);
    for (size_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
    Numbers(call.outputs[1])[row] = mean;
    Numbers(call.outputs[2])[row] = variance;
  }
  return absl::OkStatus();
}

absl::Status LayerNormGrad(const KernelCall& call) {
  const absl::Span<const double> weight = Numbers(call.inputs[2]);
  const absl::Span<double> grad_weight = Numbers(call.outputs[1]);
  const absl::Span<double> grad_bias = Numbers(call.outputs[2]);
  std::ranges::fill(grad_weight, 0.0);
  std::ranges::fill(grad_bias, 0.0);
  const size_t count = weight.size();
  const int64_t rows = call.inputs[3]->elements();
  for (int64_t row = 0; row < rows; ++row) {
    const absl::Span<const double> x = Numbers(call.inputs[0]).subspan(row * count, count);
    const absl::Span<const double> grad_y = Numbers(call.inputs[1]).subspan(row * count, count);
    const absl::Span<double> grad_x = Numbers(call.outputs[0]).subspan(row * count, count);
    const double mean = Numbers(call.inputs[3])[row];
    const double factor = 1 / std::sqrt(Numbers(call.inputs[4])[row] + call.op<LayerNormGradOp>().epsilon);
    // Means over the row: of the gradient of the normalised input, and of its product with this input.
    double grad_mean = 0;
    double product_mean = 0;
    for (size_t i = 0; i < count; ++i) {
      const double normalized = (x[i] - mean) * factor;
      grad_weight[i] += grad_y[i] * normalized;
      grad_bias[i] += grad_y[i];
      grad_mean += grad_y[i] * weight[i] / count;
      product_mean += grad_y[i] * weight[i] * normalized / count;
    }
    for (size_t i = 0; i < count; ++i) {
      const double normalized = (x[i] - mean) * factor;
      grad_x[i] = factor * (grad_y[i] * weight[i] - grad_mean - normalized * product_mean);
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
