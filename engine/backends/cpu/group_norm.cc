#include "engine/backends/cpu/group_norm.h"

#include <cmath>

#include "engine/backends/cpu/lanes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/group_norm.h"

namespace tandem::cpu {
namespace {

// The groups of a plain tensor [N, C, ...]: `groups` in a sample, each with `channels` channels of
// `positions`.
struct GroupSizes {
  int64_t samples = 0;
  int64_t groups = 0;
  int64_t channels = 0;
  int64_t positions = 0;

  int64_t count() const { return samples * groups; }
  int64_t elements() const { return channels * positions; }
  int64_t all_channels() const { return groups * channels; }
};

GroupSizes SizesOf(const Shape& x, int64_t groups) {
  return {
      .samples = x[0], .groups = groups, .channels = x[1] / groups, .positions = ExtentOf(x, 2, x.rank())};
}

void Normalize(const GroupSizes& sizes, double epsilon, const float* x, const float* weight,
               const float* bias, float* y, float* mean, float* inv_std) {
  const int64_t elements = sizes.elements();
  double sum = 0;
  for (int64_t i = 0; i < elements; ++i) sum += x[i];
  const double center = sum / static_cast<double>(elements);
  double squares = 0;
  for (int64_t i = 0; i < elements; ++i) squares += (x[i] - center) * (x[i] - center);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(elements) + epsilon);
  *mean = static_cast<float>(center);
  *inv_std = static_cast<float>(factor);
  for (int64_t c = 0; c < sizes.channels; ++c) {
    const float scale = static_cast<float>(weight[c] * factor);
    for (int64_t i = c * sizes.positions; i < (c + 1) * sizes.positions; ++i) {
      y[i] = scale * (x[i] - *mean) + bias[c];
    }
  }
}

// Computes for each channel of a group the sum of dy, and the sum of dy times the normalised values.
void ChannelSums(const GroupSizes& sizes, const float* x, const float* dy, float mean, float inv_std,
                 double* sums, double* products) {
  for (int64_t c = 0; c < sizes.channels; ++c) {
    double sum = 0;
    double centered = 0;
    for (int64_t i = c * sizes.positions; i < (c + 1) * sizes.positions; ++i) {
      sum += dy[i];
      centered += dy[i] * (x[i] - mean);
    }
    sums[c] = sum;
    products[c] = centered * inv_std;
  }
}

void NormalizeGrad(const GroupSizes& sizes, const float* x, const float* dy, const float* weight, float mean,
                   float inv_std, const double* sums, const double* products, float* dx) {
  double grad = 0;
  double product = 0;
  for (int64_t c = 0; c < sizes.channels; ++c) {
    grad += weight[c] * sums[c];
    product += weight[c] * products[c];
  }
  const double count = static_cast<double>(sizes.elements());
  const float offset = static_cast<float>(-inv_std * grad / count);
  const float slope = static_cast<float>(-inv_std * inv_std * product / count);
  for (int64_t c = 0; c < sizes.channels; ++c) {
    const float factor = inv_std * weight[c];
    for (int64_t i = c * sizes.positions; i < (c + 1) * sizes.positions; ++i) {
      dx[i] = factor * dy[i] + slope * (x[i] - mean) + offset;
    }
  }
}

}  // namespace

absl::Status LowerGroupNorm(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const GroupNormOp&>(*node.op);
  const GroupSizes sizes = SizesOf(lowering.shape(node.inputs[0]), op.groups);
  const double epsilon = op.epsilon;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region bias, lowering.GetPlain(node.inputs[2]));
  const Region y = lowering.DefinePlain(node.outputs[0]);
  const Region mean = lowering.DefinePlain(node.outputs[1]);
  const Region inv_std = lowering.DefinePlain(node.outputs[2]);
  lowering.Emit({.name = "group_norm",
                 .reads = {x, weight, bias},
                 .writes = {y, mean, inv_std},
                 .run = [=](const RunContext& run) {
                   run.team->For(sizes.count(), [&](int64_t begin, int64_t end) {
                     for (int64_t g = begin; g < end; ++g) {
                       const int64_t channel = g % sizes.groups * sizes.channels;
                       Normalize(sizes, epsilon, run.At<const float>(x) + g * sizes.elements(),
                                 run.At<const float>(weight) + channel, run.At<const float>(bias) + channel,
                                 run.At<float>(y) + g * sizes.elements(), run.At<float>(mean) + g,
                                 run.At<float>(inv_std) + g);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerGroupNormGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const GroupSizes sizes =
      SizesOf(lowering.shape(node.inputs[0]), static_cast<const GroupNormGradOp&>(*node.op).groups);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> inputs, lowering.GetAllPlain(node));
  const Region x = inputs[0], dy = inputs[1], weight = inputs[2], mean = inputs[3], inv_std = inputs[4];
  const std::vector<Region> outputs = lowering.DefineAllPlain(node);
  const Region dx = outputs[0], dweight = outputs[1], dbias = outputs[2];
  // [samples][channels] each.
  const int64_t all = sizes.samples * sizes.all_channels();
  const Region scratch = lowering.Scratch(2 * all * static_cast<int64_t>(sizeof(double)));
  lowering.Emit({.name = "group_norm_grad",
                 .reads = inputs,
                 .writes = {dx, dweight, dbias, scratch},
                 .run = [=](const RunContext& run) {
                   double* sums = run.At<double>(scratch);
                   double* products = sums + all;
                   run.team->For(sizes.count(), [&](int64_t begin, int64_t end) {
                     for (int64_t g = begin; g < end; ++g) {
                       const float* own_x = run.At<const float>(x) + g * sizes.elements();
                       const float* own_dy = run.At<const float>(dy) + g * sizes.elements();
                       const float center = run.At<const float>(mean)[g];
                       const float factor = run.At<const float>(inv_std)[g];
                       double* own_sums = sums + g * sizes.channels;
                       double* own_products = products + g * sizes.channels;
                       ChannelSums(sizes, own_x, own_dy, center, factor, own_sums, own_products);
                       NormalizeGrad(sizes, own_x, own_dy,
                                     run.At<const float>(weight) + g % sizes.groups * sizes.channels, center,
                                     factor, own_sums, own_products,
                                     run.At<float>(dx) + g * sizes.elements());
                     }
                   });
                   for (int64_t c = 0; c < sizes.all_channels(); ++c) {
                     double sum = 0;
                     double product = 0;
                     for (int64_t i = c; i < all; i += sizes.all_channels()) {
                       sum += sums[i];
                       product += products[i];
                     }
                     run.At<float>(dbias)[c] = static_cast<float>(sum);
                     run.At<float>(dweight)[c] = static_cast<float>(product);
                   }
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
