#include "engine/graph/ops/channel_bias.h"

#include <algorithm>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// Returns the channel of element i of [N, C, ...].
int64_t ChannelOf(const Shape& shape, int64_t i) {
  return i / (shape.elements() / (shape[0] * shape[1])) % shape[1];
}

}  // namespace

absl::Status ChannelBias(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> bias = Numbers(call.inputs[1]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = x[i] + bias[ChannelOf(call.inputs[0]->shape(), static_cast<int64_t>(i))];
  }
  return absl::OkStatus();
}

absl::Status ChannelBiasGrad(const KernelCall& call) {
  const absl::Span<const double> grad_y = Numbers(call.inputs[0]);
  const absl::Span<double> grad_bias = Numbers(call.outputs[0]);
  std::ranges::fill(grad_bias, 0.0);
  for (size_t i = 0; i < grad_y.size(); ++i) {
    grad_bias[ChannelOf(call.inputs[0]->shape(), static_cast<int64_t>(i))] += grad_y[i];
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
