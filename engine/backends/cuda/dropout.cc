#include "engine/backends/cuda/kernels/dropout.h"

#include "engine/backends/cuda/offered.h"
#include "engine/base/philox.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/dropout.h"

namespace tandem::cuda {
namespace {

absl::Status LowerDropout(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const DropoutOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region step, lowering.GetPlain(node.inputs[1]));
  const DropoutRule rule = {.sizes = ChannelSizesOf(home.layout.shape()),
                            .channels_last = home.layout.channels_last(),
                            .seed = op.seed,
                            .purpose = static_cast<uint8_t>(RandomPurpose::kDropout),
                            .first_sample = op.first_sample,
                            .step_bits = DropoutOp::kStepBits,
                            .threshold = op.threshold(),
                            .scale = static_cast<float>(op.scale())};
  const DType type = home.layout.dtype();
  const Region x = home.region;
  const Region y = lowering.Define(node.outputs[0], home.layout);
  lowering.Emit({.name = "dropout",
                 .reads = {x, step},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   Dropout(rule, type, run.At<int64_t>(step), run.At(x), run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> DropoutOps() {
  static constexpr Offered kOps[] = {{"dropout", LowerDropout}};
  return kOps;
}

}  // namespace tandem::cuda
