#include "engine/graph/ops/group_norm.h"

#include <algorithm>
#include <cmath>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// The groups of [N, C, ...]. The elements of a group are together.
struct Groups {
  Groups(const Shape& shape, int64_t groups)
      : count(shape[0] * groups),
        channels(shape[1] / groups),
        positions(shape.elements() / (shape[0] * shape[1])),
        elements(channels * positions),
        per_sample(groups) {}

  // Returns the channel of element i of group g.
  int64_t ChannelOf(int64_t g, int64_t i) const { return g % per_sample * channels + i / positions; }

  int64_t count;     // Of all samples.
  int64_t channels;  // Of a group.
  int64_t positions;
  int64_t elements;  // Of a group.
  int64_t per_sample;
};

}  // namespace

absl::Status GroupNorm(const KernelCall& call) {
  const auto& op = call.op<GroupNormOp>();
  const Groups groups(call.inputs[0]->shape(), op.groups);
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> weight = Numbers(call.inputs[1]);
  const absl::Span<const double> bias = Numbers(call.inputs[2]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  const double count = static_cast<double>(groups.elements);
  for (int64_t g = 0; g < groups.count; ++g) {
    const absl::Span<const double> own = x.subspan(g * groups.elements, groups.elements);
    double sum = 0;
    for (const double number : own) sum += number;
    const double mean = sum / count;
    double squares = 0;
    for (const double number : own) squares += (number - mean) * (number - mean);
    const double inv_std = 1 / std::sqrt(squares / count + op.epsilon);
    for (int64_t i = 0; i < groups.elements; ++i) {
      const int64_t c = groups.ChannelOf(g, i);
      y[g * groups.elements + i] = weight[c] * (own[i] - mean) * inv_std + bias[c];
    }
    Numbers(call.outputs[1])[g] = mean;
    Numbers(call.outputs[2])[g] = inv_std;
  }
  return absl::OkStatus();
}

absl::Status GroupNormGrad(const KernelCall& call) {
  const Groups groups(call.inputs[0]->shape(), call.op<GroupNormGradOp>().groups);
  const absl::Span<const double> weight = Numbers(call.inputs[2]);
  const absl::Span<double> grad_weight = Numbers(call.outputs[1]);
  const absl::Span<double> grad_bias = Numbers(call.outputs[2]);
  std::ranges::fill(grad_weight, 0.0);
  std::ranges::fill(grad_bias, 0.0);
  const double count = static_cast<double>(groups.elements);
  for (int64_t g = 0; g < groups.count; ++g) {
    const double mean = Numbers(call.inputs[3])[g];
    const double inv_std = Numbers(call.inputs[4])[g];
    const absl::Span<const double> x = Numbers(call.inputs[0]).subspan(g * groups.elements, groups.elements);
    const absl::Span<const double> grad_y =
        Numbers(call.inputs[1]).subspan(g * groups.elements, groups.elements);
    // Means over the group: of the gradient of the normalised values, and of its product with these values.
    double mean_grad = 0;
    double mean_product = 0;
    for (int64_t i = 0; i < groups.elements; ++i) {
      const int64_t c = groups.ChannelOf(g, i);
      const double normal = (x[i] - mean) * inv_std;
      grad_bias[c] += grad_y[i];
      grad_weight[c] += grad_y[i] * normal;
      mean_grad += weight[c] * grad_y[i] / count;
      mean_product += weight[c] * grad_y[i] * normal / count;
    }
    for (int64_t i = 0; i < groups.elements; ++i) {
      const double normal = (x[i] - mean) * inv_std;
      Numbers(call.outputs[0])[g * groups.elements + i] =
          inv_std * (weight[groups.ChannelOf(g, i)] * grad_y[i] - mean_grad - normal * mean_product);
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
