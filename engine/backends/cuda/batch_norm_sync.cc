#include "engine/graph/ops/batch_norm_sync.h"

#include "engine/backends/cuda/batch_norm.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

absl::Status LowerMoments(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const BatchNormMomentsOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Region x, ChannelsLastInput(lowering, node, 0));
  const ChannelRows sizes = ChannelRowsOf(lowering, node.inputs[0]);
  const SumRegions sums(lowering, sizes);
  const Region moments = lowering.DefinePlain(node.outputs[0]);
  const int64_t row = 2 * sizes.channels + 1;
  lowering.Emit(
      {.name = "batch_norm_moments",
       .reads = {x},
       .writes = {moments, sums.partials, sums.tickets},
       .run = [=, own = op.rank * row,
               bytes = op.replicas * row * static_cast<int64_t>(sizeof(float))](const RunContext& run) {
         TANDEM_RETURN_IF_ERROR(Zero(run.At(moments), bytes, run.stream));
         BatchNormMoments(sizes, run.At(x), sums.At(run), run.At<float>(moments) + own, run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerRunning(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> in, ChannelVectors(lowering, node, 0));
  const int64_t replicas = lowering.shape(node.inputs[0])[0];
  const int64_t channels = lowering.shape(node.inputs[1])[0];
  lowering.Emit({.name = "batch_norm_running",
                 .reads = in,
                 .writes = {in[1], in[2]},
                 .run = [=, momentum = static_cast<const BatchNormRunningOp&>(*node.op).momentum](
                            const RunContext& run) {
                   BatchNormMerge(replicas, channels, run.At<float>(in[0]),
                                  {.momentum = momentum,
                                   .running_mean = run.At<float>(in[1]),
                                   .running_var = run.At<float>(in[2])},
                                  run.stream);
                   return absl::OkStatus();
                 }});
  for (const int i : node.op->MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

absl::Status LowerSums(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Region x, ChannelsLastInput(lowering, node, 0));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, ChannelsLastInput(lowering, node, 1));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, ChannelVectors(lowering, node, 2));
  const Region mean = vectors[0], inv_std = vectors[1];
  const ChannelRows sizes = ChannelRowsOf(lowering, node.inputs[0]);
  const Region dweight = lowering.DefinePlain(node.outputs[0]);
  const Region dbias = lowering.DefinePlain(node.outputs[1]);
  const SumRegions sums(lowering, sizes);
  lowering.Emit({.name = "batch_norm_sums",
                 .reads = {x, dy, mean, inv_std},
                 .writes = {dweight, dbias, sums.partials, sums.tickets},
                 .run = [=](const RunContext& run) {
                   BatchNormGradSums(sizes,
                                     {.mean = run.At<float>(mean), .deviation = run.At<float>(inv_std)},
                                     {.x = run.At(x), .dy = run.At(dy)}, sums.At(run), run.At<float>(dweight),
                                     run.At<float>(dbias), nullptr, run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerSyncGrad(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Region x, ChannelsLastInput(lowering, node, 0));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, ChannelsLastInput(lowering, node, 1));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, ChannelVectors(lowering, node, 2));
  const Region dx = lowering.Define(node.outputs[0], ChannelsLastOf(lowering, node.outputs[0]));
  const ChannelRows sizes = ChannelRowsOf(lowering, node.inputs[0]);
  lowering.Emit({.name = "batch_norm_sync_grad",
                 .reads = {x, dy, vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]},
                 .writes = {dx},
                 .in_place = {{0, 1}, {0, 0}},
                 .run = [=](const RunContext& run) {
                   BatchNormGradApply(sizes,
                                      {.mean = run.At<float>(vectors[1]),
                                       .deviation = run.At<float>(vectors[2]),
                                       .weight = run.At<float>(vectors[0])},
                                      {.x = run.At(x), .dy = run.At(dy)}, run.At<float>(vectors[3]),
                                      run.At<float>(vectors[4]), run.At(dx), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> BatchNormSyncOps() {
  static constexpr Offered kOps[] = {
      {"batch_norm_moments", LowerMoments},
      {"batch_norm_running", LowerRunning},
      {"batch_norm_sums", LowerSums},
      {"batch_norm_sync_grad", LowerSyncGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
