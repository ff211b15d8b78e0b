#include "engine/graph/ops/layer_norm.h"

#include "engine/backends/cuda/batch_norm.h"
#include "engine/backends/cuda/kernels/layer_norm.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// Returns the tensor's sizes as [rows, normalised elements].
ChannelRows RowsOf(const Lowering& lowering, ValueId x, ValueId weight) {
  const int64_t columns = lowering.shape(weight).elements();
  return {.rows = lowering.shape(x).elements() / columns,
          .channels = columns,
          .type = lowering.compute(),
          .multiprocessors = lowering.device().multiprocessors()};
}

Region DefinePlain(Lowering& lowering, ValueId id, DType type) {
  return lowering.Define(id, Layout::Plain(type, lowering.shape(id)));
}

absl::Status LowerLayerNorm(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const ChannelRows sizes = RowsOf(lowering, node.inputs[0], node.inputs[1]);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlainCompute(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region bias, lowering.GetPlain(node.inputs[2]));
  const Region y = DefinePlain(lowering, node.outputs[0], sizes.type);
  const Region mean = lowering.DefinePlain(node.outputs[1]);
  const Region variance = lowering.DefinePlain(node.outputs[2]);
  const float epsilon = static_cast<float>(static_cast<const LayerNormOp&>(*node.op).epsilon);
  lowering.Emit({.name = "layer_norm",
                 .reads = {x, weight, bias},
                 .writes = {y, mean, variance},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   LayerNorm(sizes, run.At(x), run.At<float>(weight), run.At<float>(bias), epsilon, run.At(y),
                             run.At<float>(mean), run.At<float>(variance), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerLayerNormGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const ChannelRows sizes = RowsOf(lowering, node.inputs[0], node.inputs[2]);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlainCompute(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.GetPlainCompute(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[2]));
  TANDEM_ASSIGN_OR_RETURN(const Region mean, lowering.GetPlain(node.inputs[3]));
  TANDEM_ASSIGN_OR_RETURN(const Region variance, lowering.GetPlain(node.inputs[4]));
  const Region dx = DefinePlain(lowering, node.outputs[0], sizes.type);
  const Region dweight = lowering.DefinePlain(node.outputs[1]);
  const Region dbias = lowering.DefinePlain(node.outputs[2]);
  const SumRegions sums(lowering, sizes);
  const float epsilon = static_cast<float>(static_cast<const LayerNormGradOp&>(*node.op).epsilon);
  lowering.Emit({.name = "layer_norm_grad",
                 .reads = {x, dy, weight, mean, variance},
                 .writes = {dx, dweight, dbias, sums.partials, sums.tickets},
                 .in_place = {{0, 1}, {0, 0}},
                 .run = [=](const RunContext& run) {
                   LayerNormGrad(sizes,
                                 {.x = run.At(x),
                                  .dy = run.At(dy),
                                  .weight = run.At<float>(weight),
                                  .mean = run.At<float>(mean),
                                  .variance = run.At<float>(variance),
                                  .epsilon = epsilon},
                                 sums.At(run), run.At(dx), run.At<float>(dweight), run.At<float>(dbias),
                                 run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> LayerNormOps() {
  static constexpr Offered kOps[] = {
      {"layer_norm", LowerLayerNorm},
      {"layer_norm_grad", LowerLayerNormGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
