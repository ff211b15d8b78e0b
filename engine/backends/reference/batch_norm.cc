#include "engine/graph/ops/batch_norm.h"

#include <cmath>

#include "engine/backends/reference/channels.h"
#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
absl::Status BatchNorm(const KernelCall& call) {
  const auto& op = call.op<BatchNormOp>();
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (int64_t c = 0; c < channels.count(); ++c) {
    const ChannelMoments moments = ChannelMomentsOf(channels, c, x);
    const double mean = moments.mean;
    const double inv_std = 1 / std::sqrt(moments.squares / channels.elements() + op.epsilon);
    const double weight = Numbers(call.inputs[1])[c];
    const double bias = Numbers(call.inputs[2])[c];
    channels.ForEach(c, [&](int64_t i) { y[i] = weight * (x[i] - mean) * inv_std + bias; });
    Numbers(call.outputs[1])[c] = mean;
    Numbers(call.outputs[2])[c] = inv_std;

    double& running_mean = Numbers(call.inputs[3])[c];
    double& running_var = Numbers(call.inputs[4])[c];
    running_mean += op.momentum * (mean - running_mean);
    if (channels.elements() > 1) {
      running_var += op.momentum * (moments.squares / (channels.elements() - 1) - running_var);
    }
  }
  return absl::OkStatus();
}

absl::Status BatchNormGrad(const KernelCall& call) {
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  const absl::Span<double> grad_x = Numbers(call.outputs[0]);
  for (int64_t c = 0; c < channels.count(); ++c) {
    const double weight = Numbers(call.inputs[2])[c];
    const double mean = Numbers(call.inputs[3])[c];
    const double inv_std = Numbers(call.inputs[4])[c];
    const ChannelGrads grads = ChannelGradsOf(channels, c, x, grad_y, mean, inv_std);
    channels.ForEach(c, [&](int64_t i) {
      const double normal = (x[i] - mean) * inv_std;
      grad_x[i] =
          weight * inv_std *
          (grad_y[i] - grads.bias / channels.elements() - normal * grads.weight / channels.elements());
    });
    Numbers(call.outputs[1])[c] = grads.weight;
    Numbers(call.outputs[2])[c] = grads.bias;
  }
  return absl::OkStatus();
}

absl::Status BatchNormInference(const KernelCall& call) {
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (int64_t c = 0; c < channels.count(); ++c) {
    const double weight = Numbers(call.inputs[1])[c];
    const double bias = Numbers(call.inputs[2])[c];
    const double mean = Numbers(call.inputs[3])[c];
    const double inv_std =
        1 / std::sqrt(Numbers(call.inputs[4])[c] + call.op<BatchNormInferenceOp>().epsilon);
    channels.ForEach(c, [&](int64_t i) { y[i] = weight * (x[i] - mean) * inv_std + bias; });
  }
  return absl::OkStatus();
}

absl::Status BatchNormInferenceGrad(const KernelCall& call) {
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  const absl::Span<double> grad_x = Numbers(call.outputs[0]);
  for (int64_t c = 0; c < channels.count(); ++c) {
    const double weight = Numbers(call.inputs[2])[c];
    const double mean = Numbers(call.inputs[3])[c];
    const double epsilon = call.op<BatchNormInferenceGradOp>().epsilon;
    const double inv_std = 1 / std::sqrt(Numbers(call.inputs[4])[c] + epsilon);
    const ChannelGrads grads = ChannelGradsOf(channels, c, x, grad_y, mean, inv_std);
    channels.ForEach(c, [&](int64_t i) { grad_x[i] = weight * inv_std * grad_y[i]; });
    Numbers(call.outputs[1])[c] = grads.weight;
    Numbers(call.outputs[2])[c] = grads.bias;
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
