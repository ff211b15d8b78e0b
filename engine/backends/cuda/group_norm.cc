#include "engine/graph/ops/group_norm.h"

#include "engine/backends/cuda/batch_norm.h"
#include "engine/backends/cuda/kernels/group_norm.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

GroupSizes SizesOf(const Lowering& lowering, ValueId x, int64_t groups) {
  const ChannelSizes sizes = ChannelSizesOf(lowering.shape(x));
  return {.samples = sizes.outer,
          .positions = sizes.inner,
          .channels = sizes.channels,
          .groups = groups,
          .type = lowering.compute()};
}

absl::Status LowerGroupNorm(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const GroupNormOp&>(*node.op);
  const GroupSizes sizes = SizesOf(lowering, node.inputs[0], op.groups);
  TANDEM_ASSIGN_OR_RETURN(const Region x, ChannelsLastInput(lowering, node, 0));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, ChannelVectors(lowering, node, 1));
  const Region weight = vectors[0], bias = vectors[1];
  const Region y = lowering.Define(node.outputs[0], ChannelsLastOf(lowering, node.outputs[0]));
  const Region mean = lowering.DefinePlain(node.outputs[1]);
  const Region inv_std = lowering.DefinePlain(node.outputs[2]);
  const Region scratch = lowering.Scratch(GroupScratchBytes(sizes));
  lowering.Emit({.name = "group_norm",
                 .reads = {x, weight, bias},
                 .writes = {y, mean, inv_std, scratch},
                 .in_place = {{0, 0}},
                 .run = [=, epsilon = op.epsilon](const RunContext& run) {
                   GroupNorm(sizes, run.At(x), run.At<float>(weight), run.At<float>(bias), epsilon,
                             run.At<float>(scratch), run.At(y), run.At<float>(mean), run.At<float>(inv_std),
                             run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerGroupNormGrad(Lowering& lowering, const Node& node) {
  const GroupSizes sizes =
      SizesOf(lowering, node.inputs[0], static_cast<const GroupNormGradOp&>(*node.op).groups);
  TANDEM_ASSIGN_OR_RETURN(const Region x, ChannelsLastInput(lowering, node, 0));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, ChannelsLastInput(lowering, node, 1));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, ChannelVectors(lowering, node, 2));
  const Region weight = vectors[0], mean = vectors[1], inv_std = vectors[2];
  const Region dx = lowering.Define(node.outputs[0], ChannelsLastOf(lowering, node.outputs[0]));
  const Region dweight = lowering.DefinePlain(node.outputs[1]);
  const Region dbias = lowering.DefinePlain(node.outputs[2]);
  const Region scratch = lowering.Scratch(GroupScratchBytes(sizes));
  lowering.Emit({.name = "group_norm_grad",
                 .reads = {x, dy, weight, mean, inv_std},
                 .writes = {dx, dweight, dbias, scratch},
                 .in_place = {{0, 1}, {0, 0}},
                 .run = [=](const RunContext& run) {
                   GroupNormGrad(sizes,
                                 {.x = run.At(x),
                                  .dy = run.At(dy),
                                  .weight = run.At<float>(weight),
                                  .mean = run.At<float>(mean),
                                  .inv_std = run.At<float>(inv_std)},
                                 run.At<float>(scratch), run.At(dx), run.At<float>(dweight),
                                 run.At<float>(dbias), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> GroupNormOps() {
  static constexpr Offered kOps[] = {
      {"group_norm", LowerGroupNorm},
      {"group_norm_grad", LowerGroupNormGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
