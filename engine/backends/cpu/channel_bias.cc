#include "engine/backends/cpu/channel_bias.h"

#include "engine/backends/cpu/lanes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/channel_bias.h"

namespace tandem::cpu {

absl::Status LowerChannelBias(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Lanes lanes = LanesOf(home.layout);
  const Layout layout = lanes.LayoutOf(shape);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], layout));
  TANDEM_ASSIGN_OR_RETURN(const Region bias, lowering.GetPlain(node.inputs[1]));
  const Region y = lowering.Define(node.outputs[0], layout);
  const int64_t channels = shape[1];
  const int64_t plane = ExtentOf(shape, 2, shape.rank()) * lanes.lanes;
  lowering.Emit({.name = "channel_bias",
                 .reads = {x, bias},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   run.team->For(lanes.blocks * channels, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const float number = run.At<const float>(bias)[i % channels];
                       const float* from = run.At<const float>(x) + i * plane;
                       float* to = run.At<float>(y) + i * plane;
                       for (int64_t k = 0; k < plane; ++k) to[k] = from[k] + number;
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerChannelBiasGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Lanes lanes = LanesOf(home.layout);
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[0], lanes.LayoutOf(shape)));
  const Region dbias = lowering.DefinePlain(node.outputs[0]);
  const int64_t channels = shape[1];
  const int64_t plane = ExtentOf(shape, 2, shape.rank()) * lanes.lanes;
  lowering.Emit(
      {.name = "channel_bias_grad", .reads = {dy}, .writes = {dbias}, .run = [=](const RunContext& run) {
         run.team->For(channels, [&](int64_t begin, int64_t end) {
           for (int64_t c = begin; c < end; ++c) {
             double sum = 0;
             for (int64_t block = 0; block < lanes.blocks; ++block) {
               // Lanes past the batch hold zero in gradients.
               const float* grad = run.At<const float>(dy) + (block * channels + c) * plane;
               for (int64_t k = 0; k < plane; ++k) sum += grad[k];
             }
             run.At<float>(dbias)[c] = static_cast<float>(sum);
           }
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
