#include "engine/backends/cuda/batch_norm.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/batch_norm_sync.h"

namespace tandem::cuda {
namespace {

// The statistics of a normalisation: their place, and their computation as the step's first work.
struct Statistics {
  std::vector<Region> reads = {};
  std::vector<Region> writes = {};
  // Null if the statistics exist, or are computed together with y.
  std::function<void(const RunContext& run)> compute = {};
  // Computes the statistics and y. Null if BatchNormApply computes y.
  std::function<void(const RunContext& run, const void* addend, bool relu, void* y)> train = {};
  Region mean;
  Region deviation;
  float epsilon = -1;  // As in ChannelNorm.
};

// `vectors` are weight, bias, and the running mean and variance.
Statistics OfBatch(Lowering& lowering, const Node& node, Region x, const std::vector<Region>& vectors) {
  const auto& op = static_cast<const BatchNormOp&>(*node.op);
  const ChannelRows sizes = ChannelRowsOf(lowering, node.inputs[0]);
  const Region mean = lowering.DefinePlain(node.outputs[1]);
  const Region inv_std = lowering.DefinePlain(node.outputs[2]);
  const SumRegions sums(lowering, sizes);
  return {.reads = {vectors[2], vectors[3]},
          .writes = {mean, inv_std, vectors[2], vectors[3], sums.partials, sums.tickets},
          .train =
              [=, momentum = op.momentum, epsilon = op.epsilon](const RunContext& run, const void* addend,
                                                                bool relu, void* y) {
                BatchNormTrain(sizes,
                               {.x = run.At(x),
                                .weight = run.At<float>(vectors[0]),
                                .bias = run.At<float>(vectors[1]),
                                .addend = addend,
                                .relu = relu},
                               sums.At(run),
                               {.momentum = momentum,
                                .epsilon = epsilon,
                                .mean = run.At<float>(mean),
                                .inv_std = run.At<float>(inv_std),
                                .running_mean = run.At<float>(vectors[2]),
                                .running_var = run.At<float>(vectors[3])},
                               y, run.stream);
              },
          .mean = mean,
          .deviation = inv_std};
}

// The fifth of `vectors` has the moments of all replicas.
Statistics OfReplicas(Lowering& lowering, const Node& node, const std::vector<Region>& vectors) {
  const auto& op = static_cast<const BatchNormSyncOp&>(*node.op);
  const int64_t channels = ChannelRowsOf(lowering, node.inputs[0]).channels;
  const int64_t replicas = lowering.shape(node.inputs[5])[0];
  const Region mean = lowering.DefinePlain(node.outputs[1]);
  const Region inv_std = lowering.DefinePlain(node.outputs[2]);
  return {.reads = {vectors[2], vectors[3], vectors[4]},
          .writes = {mean, inv_std, vectors[2], vectors[3]},
          .compute =
              [=, momentum = op.momentum, epsilon = op.epsilon](const RunContext& run) {
                BatchNormMerge(replicas, channels, run.At<float>(vectors[4]),
                               {.momentum = momentum,
                                .epsilon = epsilon,
                                .mean = run.At<float>(mean),
                                .inv_std = run.At<float>(inv_std),
                                .running_mean = run.At<float>(vectors[2]),
                                .running_var = run.At<float>(vectors[3])},
                               run.stream);
              },
          .mean = mean,
          .deviation = inv_std};
}

Statistics Given(const Node& node, const std::vector<Region>& vectors) {
  const auto& op = static_cast<const BatchNormInferenceOp&>(*node.op);
  return {.reads = {vectors[2], vectors[3]},
          .mean = vectors[2],
          .deviation = vectors[3],
          .epsilon = static_cast<float>(op.epsilon)};
}

absl::Status LowerForward(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Region x, ChannelsLastInput(lowering, node, 0));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, ChannelVectors(lowering, node, 1));
  const absl::string_view kind = node.op->kind();
  Statistics statistics = kind == "batch_norm"        ? OfBatch(lowering, node, x, vectors)
                          : kind == "batch_norm_sync" ? OfReplicas(lowering, node, vectors)
                                                      : Given(node, vectors);
  const Region weight = vectors[0], bias = vectors[1];
  const Layout layout = ChannelsLastOf(lowering, node.inputs[0]);
  std::string name(kind);
  ValueId output = node.outputs[0];
  std::vector<Region> reads = {x};
  std::vector<std::pair<int, int>> in_place = {{0, 0}};
  Region addend = x;
  const ForwardGroup* group = lowering.fusions().From(node);
  const bool adds = group != nullptr && group->add != nullptr;
  const bool relu = group != nullptr && group->relu != nullptr;
  if (adds) {
    TANDEM_ASSIGN_OR_RETURN(addend, lowering.Get(group->addend, layout));
    reads.push_back(addend);
    in_place.push_back({0, 1});
  }
  if (group != nullptr) {
    absl::StrAppend(&name, adds ? " + add" : "", relu ? " + relu" : "");
    lowering.Accept(*group);
    output = group->result();
  }
  const Region y = lowering.Define(output, layout);
  reads.insert(reads.end(), {weight, bias});
  reads.insert(reads.end(), statistics.reads.begin(), statistics.reads.end());
  std::vector<Region> writes = {y};
  writes.insert(writes.end(), statistics.writes.begin(), statistics.writes.end());
  const ChannelRows sizes = ChannelRowsOf(lowering, node.inputs[0]);
  lowering.Emit({.name = std::move(name),
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .in_place = std::move(in_place),
                 .run = [=, compute = std::move(statistics.compute), train = std::move(statistics.train),
                         mean = statistics.mean, deviation = statistics.deviation,
                         epsilon = statistics.epsilon](const RunContext& run) {
                   const void* other = adds ? run.At(addend) : nullptr;
                   if (train) {
                     train(run, other, relu, run.At(y));
                     return absl::OkStatus();
                   }
                   if (compute) compute(run);
                   BatchNormApply(sizes,
                                  {.mean = run.At<float>(mean),
                                   .deviation = run.At<float>(deviation),
                                   .epsilon = epsilon,
                                   .weight = run.At<float>(weight),
                                   .bias = run.At<float>(bias)},
                                  run.At(x), other, relu, run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  for (const int i : node.op->MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

// Adds the steps of the gradient `grad`, and of the other ops of `group` unless `group` is null.
absl::Status EmitGrad(Lowering& lowering, const Node& grad, const BackwardGroup* group) {
  const Layout layout = ChannelsLastOf(lowering, grad.inputs[0]);
  const ChannelRows sizes = ChannelRowsOf(lowering, grad.inputs[0]);
  const bool training = grad.op->kind() == "batch_norm_grad";
  const float epsilon =
      training ? -1 : static_cast<float>(static_cast<const BatchNormInferenceGradOp&>(*grad.op).epsilon);
  TANDEM_ASSIGN_OR_RETURN(const Region x, ChannelsLastInput(lowering, grad, 0));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, ChannelVectors(lowering, grad, 2));
  const Region weight = vectors[0], mean = vectors[1], deviation = vectors[2];

  const bool relu = group != nullptr;
  const Node* relu_grad = relu ? group->relu_grad : nullptr;
  const Node* sum = relu ? group->add : nullptr;
  const Node* norm = relu ? group->norm : nullptr;
  const ValueId dy_value = sum != nullptr ? sum->inputs[0] : relu ? relu_grad->inputs[1] : grad.inputs[1];
  const bool two = sum != nullptr;
  const bool from_y = relu && norm == nullptr;
  // The masked gradient is stored if it has another reader, or if BatchNormGradApply cannot compute it again.
  const bool shared = relu && group->shared;
  const bool keeps = shared || (relu && !training && (two || from_y));

  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(dy_value, layout));
  Region dy2 = dy, y = dy, bias = mean;
  std::vector<Region> reads = {x, dy};
  if (two) {
    TANDEM_ASSIGN_OR_RETURN(dy2, lowering.Get(sum->inputs[1], layout));
    reads.push_back(dy2);
  }
  if (from_y) {
    TANDEM_ASSIGN_OR_RETURN(y, lowering.Get(relu_grad->inputs[0], layout));
    reads.push_back(y);
  }
  const int large = static_cast<int>(reads.size());
  if (norm != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(bias, lowering.GetPlain(norm->inputs[2]));
    reads.push_back(bias);
  }
  reads.insert(reads.end(), {weight, mean, deviation});
  const Region dx = lowering.Define(grad.outputs[0], layout);
  const Region dweight = lowering.DefinePlain(grad.outputs[1]);
  const Region dbias = lowering.DefinePlain(grad.outputs[2]);
  const SumRegions sums(lowering, sizes);
  std::vector<Region> writes = {dx, dweight, dbias, sums.partials, sums.tickets};
  // All tensors are read and written place by place: dz before dx, and x until the end.
  std::vector<std::pair<int, int>> in_place;
  for (int i = keeps && !shared ? 1 : 0; i < large; ++i) in_place.push_back({0, i});
  Region dz = dx;
  if (shared) {
    dz = lowering.Define(relu_grad->outputs[0], layout);
    for (int i = 1; i < large; ++i) in_place.push_back({static_cast<int>(writes.size()), i});
    writes.push_back(dz);
  }
  lowering.Emit({.name = absl::StrCat(two ? "add + " : "", relu ? "relu_grad + " : "", grad.op->kind()),
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .in_place = std::move(in_place),
                 .run = [=](const RunContext& run) {
                   const ChannelNorm numbers = {.mean = run.At<float>(mean),
                                                .deviation = run.At<float>(deviation),
                                                .epsilon = epsilon,
                                                .weight = run.At<float>(weight),
                                                .bias = run.At<float>(bias)};
                   const BatchNormGradIn in = {.x = run.At(x),
                                               .dy = run.At(dy),
                                               .dy2 = two ? run.At(dy2) : nullptr,
                                               .relu = relu,
                                               .y = from_y ? run.At(y) : nullptr};
                   void* const masked = keeps ? run.At(dz) : nullptr;
                   if (training) {
                     BatchNormTrainGrad(sizes, numbers, in, sums.At(run), run.At<float>(dweight),
                                        run.At<float>(dbias), masked, run.At(dx), run.stream);
                     return absl::OkStatus();
                   }
                   BatchNormGradSums(sizes, numbers, in, sums.At(run), run.At<float>(dweight),
                                     run.At<float>(dbias), masked, run.stream);
                   const BatchNormGradIn then = {
                       .x = run.At(x), .dy = keeps ? masked : run.At(dy), .relu = relu && !keeps};
                   BatchNormGradApply(sizes, numbers, then, nullptr, nullptr, run.At(dx), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerGrad(Lowering& lowering, const Node& node) {
  return EmitGrad(lowering, node, /*group=*/nullptr);
}

}  // namespace

absl::StatusOr<Region> ChannelsLastInput(Lowering& lowering, const Node& node, size_t i) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[i]));
  return lowering.Get(node.inputs[i], ChannelsLastOf(lowering, node.inputs[i]));
}

Layout ChannelsLastOf(const Lowering& lowering, ValueId id) {
  return Layout::ChannelsLast(lowering.compute(), lowering.shape(id));
}

ChannelRows ChannelRowsOf(const Lowering& lowering, ValueId id) {
  const ChannelSizes sizes = ChannelSizesOf(lowering.shape(id));
  return {.rows = sizes.outer * sizes.inner,
          .channels = sizes.channels,
          .type = lowering.compute(),
          .multiprocessors = lowering.device().multiprocessors()};
}

absl::StatusOr<std::vector<Region>> ChannelVectors(Lowering& lowering, const Node& node, size_t first) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<Region> regions, lowering.GetAllPlain(node, first));
  for (const int i : node.op->MutatedInputs()) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[i]));
    if (!home.layout.plain()) return absl::InternalError("running statistics do not lie plain");
  }
  return regions;
}

SumRegions::SumRegions(Lowering& lowering, const ChannelRows& sizes)
    : partials(lowering.Scratch(PartialBytes(sizes))), tickets(lowering.KeptZeros(TicketBytes(sizes))) {}

absl::Status LowerBackwardGroup(Lowering& lowering, const BackwardGroup& group) {
  TANDEM_RETURN_IF_ERROR(EmitGrad(lowering, *group.norm_grad, &group));
  lowering.Absorb(group.norm_grad->id);
  return absl::OkStatus();
}

absl::Span<const Offered> BatchNormOps() {
  static constexpr Offered kOps[] = {
      {"batch_norm", LowerForward},           {"batch_norm_grad", LowerGrad},
      {"batch_norm_inference", LowerForward}, {"batch_norm_inference_grad", LowerGrad},
      {"batch_norm_sync", LowerForward},
  };
  return kOps;
}

}  // namespace tandem::cuda
