#include "engine/backends/cuda/bias.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/bias.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

absl::Status LowerChannelBias(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region bias, lowering.GetPlain(node.inputs[1]));
  const Node* relu = lowering.ReluAfter(node);
  if (relu != nullptr) lowering.Absorb(relu->id);
  const bool with_relu = relu != nullptr;
  const Region x = home.region;
  const Layout& layout = home.layout;
  const Region y = lowering.Define(with_relu ? relu->outputs[0] : node.outputs[0], layout);
  const ChannelSizes sizes = ChannelSizesOf(layout.shape());
  const bool channels_last = layout.channels_last();
  const DType type = layout.dtype();
  lowering.Emit({.name = with_relu ? "channel_bias + relu" : "channel_bias",
                 .reads = {x, bias},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   AddChannelBias(sizes, channels_last, type, run.At(x), run.At<float>(bias), with_relu,
                                  run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerChannelBiasGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place dy, lowering.HomeAsMade(node.inputs[0]));
  return EmitGradBias(lowering, node.inputs[0], dy, node.outputs[0]);
}

// Returns the sums over samples and positions of `dy` that a normalisation's gradient computed for its own
// bias, or kNoValue.
ValueId SumsOfNorm(const Lowering& lowering, ValueId dy) {
  for (const NodeId id : lowering.uses().readers(dy)) {
    const Node& node = lowering.graph().node(id);
    const bool is_norm =
        node.op->kind() == "batch_norm_grad" || node.op->kind() == "batch_norm_inference_grad";
    if (is_norm && node.inputs[1] == dy && lowering.IsMade(node.outputs[2])) return node.outputs[2];
  }
  return kNoValue;
}

}  // namespace

absl::Status EmitGradBias(Lowering& lowering, ValueId dy_value, const Place& place, ValueId dbias) {
  const Layout plain = Layout::Plain(DType::kFloat32, lowering.shape(dbias));
  if (dy_value != kNoValue) {
    // The gradients that a batch normalisation passes back add up to 0, except for rounding.
    if (const Node* norm = lowering.uses().MakerOf(dy_value, "batch_norm_grad"); norm != nullptr) {
      lowering.Alias(dbias, {lowering.KeptZeros(plain.bytes()), plain});
      return absl::OkStatus();
    }
    if (const ValueId sums = SumsOfNorm(lowering, dy_value); sums != kNoValue) {
      TANDEM_ASSIGN_OR_RETURN(const Region known, lowering.Get(sums, plain));
      const Region copy = lowering.Define(dbias, plain);
      const int64_t bytes = plain.bytes();
      lowering.Emit(
          {.name = "grad_bias: copy", .reads = {known}, .writes = {copy}, .run = [=](const RunContext& run) {
             return Copy(run.At(copy), run.At(known), bytes, run.stream);
           }});
      return absl::OkStatus();
    }
  }
  const ChannelSizes sizes = ChannelSizesOf(place.layout.shape());
  const bool channels_last = place.layout.channels_last();
  const DType type = place.layout.dtype();
  const Region dy = place.region;
  const Region sums = lowering.Define(dbias, plain);
  std::vector<Region> writes = {sums};
  Region workspace = sums;
  if (const int64_t bytes = SumChannelsBytes(sizes, channels_last); bytes > 0) {
    workspace = lowering.Scratch(bytes);
    writes.push_back(workspace);
  }
  lowering.Emit(
      {.name = "grad_bias", .reads = {dy}, .writes = std::move(writes), .run = [=](const RunContext& run) {
         SumChannels(sizes, channels_last, type, run.At(dy), run.At<float>(workspace), run.At<float>(sums),
                     run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Span<const Offered> BiasOps() {
  static constexpr Offered kOps[] = {
      {"channel_bias", LowerChannelBias},
      {"channel_bias_grad", LowerChannelBiasGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
