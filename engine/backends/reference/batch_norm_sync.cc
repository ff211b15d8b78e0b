#include "engine/graph/ops/batch_norm_sync.h"

#include <cmath>

#include "engine/backends/reference/channels.h"
#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// The moments of a channel's values in all replicas.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;  // The sum of squared differences from the mean.
};

// Computes the moments from those of the replicas, [replicas, 2 C + 1] (Chan et al. 1979).
Moments MomentsOf(Tensor* moments, int64_t channel) {
  const int64_t replicas = moments->shape()[0];
  const int64_t row = moments->shape()[1];
  const int64_t channels = (row - 1) / 2;
  Moments all;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    const double* own = Numbers(moments).data() + replica * row;
    if (own[0] == 0) continue;
    const double count = all.count + own[0];
    const double difference = own[1 + channel] - all.mean;
    all.mean += difference * own[0] / count;
    all.squares += own[1 + channels + channel] + difference * difference * all.count * own[0] / count;
    all.count = count;
  }
  return all;
}

void UpdateRunning(const Moments& moments, double momentum, double* mean, double* var) {
  if (moments.count > 0) *mean += momentum * (moments.mean - *mean);
  if (moments.count > 1) *var += momentum * (moments.squares / (moments.count - 1) - *var);
}

}  // namespace

absl::Status BatchNormMoments(const KernelCall& call) {
  const auto& op = call.op<BatchNormMomentsOp>();
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> moments = Numbers(call.outputs[0]);
  std::fill(moments.begin(), moments.end(), 0.0);
  double* row = moments.data() + op.rank * (2 * channels.count() + 1);
  row[0] = channels.elements();
  for (int64_t c = 0; c < channels.count(); ++c) {
    const ChannelMoments own = ChannelMomentsOf(channels, c, x);
    row[1 + c] = own.mean;
    row[1 + channels.count() + c] = own.squares;
  }
  return absl::OkStatus();
}

absl::Status BatchNormSync(const KernelCall& call) {
  const auto& op = call.op<BatchNormSyncOp>();
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (int64_t c = 0; c < channels.count(); ++c) {
    const Moments moments = MomentsOf(call.inputs[5], c);
    const double inv_std = 1 / std::sqrt(moments.squares / moments.count + op.epsilon);
    const double weight = Numbers(call.inputs[1])[c];
    const double bias = Numbers(call.inputs[2])[c];
    channels.ForEach(c, [&](int64_t i) { y[i] = weight * (x[i] - moments.mean) * inv_std + bias; });
    Numbers(call.outputs[1])[c] = moments.mean;
    Numbers(call.outputs[2])[c] = inv_std;
    UpdateRunning(moments, op.momentum, &Numbers(call.inputs[3])[c], &Numbers(call.inputs[4])[c]);
  }
  return absl::OkStatus();
}

absl::Status BatchNormRunning(const KernelCall& call) {
  const double momentum = call.op<BatchNormRunningOp>().momentum;
  for (int64_t c = 0; c < call.inputs[1]->elements(); ++c) {
    UpdateRunning(MomentsOf(call.inputs[0], c), momentum, &Numbers(call.inputs[1])[c],
                  &Numbers(call.inputs[2])[c]);
  }
  return absl::OkStatus();
}

absl::Status BatchNormSums(const KernelCall& call) {
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  for (int64_t c = 0; c < channels.count(); ++c) {
    const double mean = Numbers(call.inputs[2])[c];
    const double inv_std = Numbers(call.inputs[3])[c];
    const ChannelGrads grads = ChannelGradsOf(channels, c, x, grad_y, mean, inv_std);
    Numbers(call.outputs[0])[c] = grads.weight;
    Numbers(call.outputs[1])[c] = grads.bias;
  }
  return absl::OkStatus();
}

absl::Status BatchNormSyncGrad(const KernelCall& call) {
  const Channels channels(call.inputs[0]->shape());
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  const absl::Span<double> grad_x = Numbers(call.outputs[0]);
  for (int64_t c = 0; c < channels.count(); ++c) {
    const double weight = Numbers(call.inputs[2])[c];
    const double mean = Numbers(call.inputs[3])[c];
    const double inv_std = Numbers(call.inputs[4])[c];
    const double product = Numbers(call.inputs[5])[c] / channels.elements();
    const double sum = Numbers(call.inputs[6])[c] / channels.elements();
    channels.ForEach(c, [&](int64_t i) {
      grad_x[i] = weight * inv_std * (grad_y[i] - sum - (x[i] - mean) * inv_std * product);
    });
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
