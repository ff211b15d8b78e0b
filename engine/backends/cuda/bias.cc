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
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region bias, lowering.GetPlain(node.inputs[1]));
  const Node* relu = lowering.OnlyReader(node.outputs[0], "relu");
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
  TANDEM_ASSIGN_OR_RETURN(const Place dy, lowering.Home(node.inputs[0]));
  EmitGradBias(lowering, dy, node.outputs[0]);
  return absl::OkStatus();
}

}  // namespace

void EmitGradBias(Lowering& lowering, const Place& place, ValueId dbias) {
  const ChannelSizes sizes = ChannelSizesOf(place.layout.shape());
  const bool channels_last = place.layout.channels_last();
  const DType type = place.layout.dtype();
  const Region dy = place.region;
  const Region sums = lowering.Define(dbias, Layout::Plain(DType::kFloat32, lowering.shape(dbias)));
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
}

absl::Span<const Offered> BiasOps() {
  static constexpr Offered kOps[] = {
      {"channel_bias", LowerChannelBias},
      {"channel_bias_grad", LowerChannelBiasGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
