#include "engine/backends/cpu/batch_norm_sync.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/batch_norm_sync.h"

namespace tandem::cpu {
namespace {

// A plain tensor [N, C, ...]. Each channel belongs to a single thread, so that sums do not depend on the
// threads.
struct Channels {
  int64_t samples = 0;
  int64_t count = 0;
  int64_t positions = 0;

  explicit Channels(const Shape& shape)
      : samples(shape[0]), count(shape[1]), positions(shape.elements() / (shape[0] * shape[1])) {}

  double values() const { return static_cast<double>(samples * positions); }

  // Calls visit(i) for the places of a channel's values.
  template <typename Visit>
  void ForEach(int64_t channel, Visit visit) const {
    for (int64_t n = 0; n < samples; ++n) {
      const int64_t first = (n * count + channel) * positions;
      for (int64_t i = first; i < first + positions; ++i) visit(i);
    }
  }
};

// The moments of a channel's values in all replicas.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;  // The sum of squared differences from the mean.
};

// Computes the moments from those of the replicas, [replicas, 2 channels + 1] (Chan et al. 1979).
Moments MomentsOf(const float* moments, int64_t replicas, int64_t channels, int64_t channel) {
  Moments all;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    const float* own = moments + replica * (2 * channels + 1);
    const double more = own[0];
    if (more == 0) continue;
    const double count = all.count + more;
    const double difference = own[1 + channel] - all.mean;
    all.mean += difference * more / count;
    all.squares += own[1 + channels + channel] + difference * difference * all.count * more / count;
    all.count = count;
  }
  return all;
}

void UpdateRunning(const Moments& moments, double momentum, float* mean, float* var) {
  if (moments.count > 0) *mean = static_cast<float>(*mean + momentum * (moments.mean - *mean));
  if (moments.count > 1) {
    *var = static_cast<float>(*var + momentum * (moments.squares / (moments.count - 1) - *var));
  }
}

absl::StatusOr<std::vector<Region>> PlainInputs(Lowering& lowering, const Node& node) {
  for (const ValueId input : node.inputs) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, input));
  return lowering.GetAllPlain(node);
}

// Checks that the inputs that the op changes in place have the plain layout.
absl::Status CheckMutatedPlain(Lowering& lowering, const Node& node) {
  for (const int i : node.op->MutatedInputs()) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[i]));
    if (!home.layout.plain()) return absl::InternalError("cpu: running statistics do not lie plain");
  }
  return absl::OkStatus();
}

// The work of a step for each channel.
using ChannelWork = std::function<void(const RunContext& run, int64_t channel)>;

void EmitForChannels(Lowering& lowering, const Node& node, int64_t channels, std::vector<Region> reads,
                     std::vector<Region> writes, ChannelWork work) {
  for (const int i : node.op->MutatedInputs()) writes.push_back(reads[i]);
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .run = [channels, work = std::move(work)](const RunContext& run) {
                   run.team->For(channels, [&](int64_t begin, int64_t end) {
                     for (int64_t c = begin; c < end; ++c) work(run, c);
                   });
                   return absl::OkStatus();
                 }});
  for (const int i : node.op->MutatedInputs()) lowering.Changed(node.inputs[i]);
}

}  // namespace

absl::Status LowerBatchNormMoments(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const BatchNormMomentsOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> in, PlainInputs(lowering, node));
  const std::vector<Region> out = lowering.DefineAllPlain(node);
  const Channels channels(lowering.shape(node.inputs[0]));
  const int64_t row = 2 * channels.count + 1;
  const int64_t own = op.rank * row;
  const int64_t all = op.replicas * row;
  lowering.Emit({.name = "batch_norm_moments",
                 .reads = in,
                 .writes = out,
                 .run = [=, x_region = in[0], moments = out[0]](const RunContext& run) {
                   const float* x = run.At<const float>(x_region);
                   float* rows = run.At<float>(moments);
                   std::fill(rows, rows + all, 0.0f);
                   rows[own] = static_cast<float>(channels.values());
                   run.team->For(channels.count, [&](int64_t begin, int64_t end) {
                     for (int64_t c = begin; c < end; ++c) {
                       double sum = 0;
                       channels.ForEach(c, [&](int64_t i) { sum += x[i]; });
                       const double mean = sum / channels.values();
                       // About the mean as the other replicas receive it.
                       const float rounded = static_cast<float>(mean);
                       double squares = 0;
                       channels.ForEach(c,
                                        [&](int64_t i) { squares += (x[i] - rounded) * (x[i] - rounded); });
                       rows[own + 1 + c] = rounded;
                       rows[own + 1 + channels.count + c] = static_cast<float>(squares);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerBatchNormSync(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const BatchNormSyncOp&>(*node.op);
  TANDEM_RETURN_IF_ERROR(CheckMutatedPlain(lowering, node));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> in, PlainInputs(lowering, node));
  const std::vector<Region> out = lowering.DefineAllPlain(node);
  const Channels channels(lowering.shape(node.inputs[0]));
  const int64_t replicas = lowering.shape(node.inputs[5])[0];
  const auto work = [=, momentum = op.momentum, epsilon = op.epsilon](const RunContext& run, int64_t c) {
    const Moments moments = MomentsOf(run.At<const float>(in[5]), replicas, channels.count, c);
    const float mean = static_cast<float>(moments.mean);
    const float inv_std = static_cast<float>(1 / std::sqrt(moments.squares / moments.count + epsilon));
    const float factor = run.At<const float>(in[1])[c] * inv_std;
    const float bias = run.At<const float>(in[2])[c];
    const float* x = run.At<const float>(in[0]);
    float* y = run.At<float>(out[0]);
    channels.ForEach(c, [&](int64_t i) { y[i] = factor * (x[i] - mean) + bias; });
    run.At<float>(out[1])[c] = mean;
    run.At<float>(out[2])[c] = inv_std;
    UpdateRunning(moments, momentum, run.At<float>(in[3]) + c, run.At<float>(in[4]) + c);
  };
  EmitForChannels(lowering, node, channels.count, in, out, work);
  return absl::OkStatus();
}

absl::Status LowerBatchNormRunning(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckMutatedPlain(lowering, node));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> in, PlainInputs(lowering, node));
  const int64_t channels = lowering.shape(node.inputs[1])[0];
  const int64_t replicas = lowering.shape(node.inputs[0])[0];
  const double momentum = static_cast<const BatchNormRunningOp&>(*node.op).momentum;
  EmitForChannels(lowering, node, channels, in, {}, [=](const RunContext& run, int64_t c) {
    UpdateRunning(MomentsOf(run.At<const float>(in[0]), replicas, channels, c), momentum,
                  run.At<float>(in[1]) + c, run.At<float>(in[2]) + c);
  });
  return absl::OkStatus();
}

absl::Status LowerBatchNormSums(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> in, PlainInputs(lowering, node));
  const std::vector<Region> out = lowering.DefineAllPlain(node);
  const Channels channels(lowering.shape(node.inputs[0]));
  EmitForChannels(lowering, node, channels.count, in, out, [=](const RunContext& run, int64_t c) {
    const float* x = run.At<const float>(in[0]);
    const float* grad_y = run.At<const float>(in[1]);
    const float mean = run.At<const float>(in[2])[c];
    double product = 0;
    double sum = 0;
    channels.ForEach(c, [&](int64_t i) {
      product += grad_y[i] * (x[i] - mean);
      sum += grad_y[i];
    });
    run.At<float>(out[0])[c] = static_cast<float>(product * run.At<const float>(in[3])[c]);
    run.At<float>(out[1])[c] = static_cast<float>(sum);
  });
  return absl::OkStatus();
}

absl::Status LowerBatchNormSyncGrad(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> in, PlainInputs(lowering, node));
  const std::vector<Region> out = lowering.DefineAllPlain(node);
  const Channels channels(lowering.shape(node.inputs[0]));
  EmitForChannels(lowering, node, channels.count, in, out, [=](const RunContext& run, int64_t c) {
    const float* x = run.At<const float>(in[0]);
    const float* grad_y = run.At<const float>(in[1]);
    float* grad_x = run.At<float>(out[0]);
    const float mean = run.At<const float>(in[3])[c];
    const double inv_std = run.At<const float>(in[4])[c];
    const float factor = static_cast<float>(run.At<const float>(in[2])[c] * inv_std);
    const float slope = static_cast<float>(inv_std * run.At<const float>(in[5])[c] / channels.values());
    const float offset = static_cast<float>(run.At<const float>(in[6])[c] / channels.values());
    channels.ForEach(c,
                     [&](int64_t i) { grad_x[i] = factor * (grad_y[i] - offset - slope * (x[i] - mean)); });
  });
  return absl::OkStatus();
}

}  // namespace tandem::cpu
