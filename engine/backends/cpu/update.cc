#include "engine/backends/cpu/update.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/moving_average.h"

namespace tandem::cpu {

absl::Status LowerAllReduce(Lowering& lowering, const Node& node) {
  // Values that were computed in their slots stay there. The others are copied into their slots first.
  Region bucket;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[i]));
    TANDEM_ASSIGN_OR_RETURN(const Place slot, lowering.BucketSlot(node, i));
    TANDEM_ASSIGN_OR_RETURN(const Region source, lowering.Get(node.inputs[i], slot.layout));
    if (i == 0) bucket = slot.region;
    if (source.buffer != slot.region.buffer) {
      const Region target = slot.region;
      const int64_t bytes = slot.layout.bytes();
      lowering.Emit({.name = "copy to bucket",
                     .reads = {source},
                     .writes = {target},
                     .run = [=](const RunContext& run) {
                       std::memcpy(run.At<void>(target), run.At<const void>(source), bytes);
                       return absl::OkStatus();
                     }});
    }
    lowering.Alias(node.outputs[i], slot);
  }
  const int64_t elements = lowering.buffers()[bucket.buffer].bytes / SizeOf(DType::kFloat32);
  const float scale = static_cast<float>(static_cast<const AllReduceOp&>(*node.op).scale);
  if (scale != 1.0f) {
    lowering.Emit({.name = "all_reduce: scale",
                   .reads = {bucket},
                   .writes = {bucket},
                   .run = [=](const RunContext& run) {
                     float* data = run.At<float>(bucket);
                     run.team->For(elements, [&](int64_t begin, int64_t end) {
                       run.kernels->scale(data, scale, data, begin, end);
                     });
                     return absl::OkStatus();
                   }});
  }
  lowering.Emit({.name = "all_reduce",
                 .reads = {bucket},
                 .writes = {bucket},
                 .reduced = bucket,
                 .reduced_elements = elements});
  return absl::OkStatus();
}

namespace {

// Adds a loop that changes input 0, a variable, by input 1, in the layout of input 1. The loop also reads
// `numbers`. `loop(run, y, x, begin, end)`.
template <typename Loop>
absl::Status LowerChange(Lowering& lowering, const Node& node, std::vector<Region> numbers, Loop loop) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  // The variable takes the layout of its source: of the parameter, or of the gradient's parameter.
  TANDEM_ASSIGN_OR_RETURN(const Place source, lowering.Home(node.inputs[1]));
  TANDEM_RETURN_IF_ERROR(lowering.Get(node.inputs[0], source.layout).status());
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[1], home.layout));
  const Region y = home.region;
  const int64_t elements = home.layout.elements();
  numbers.insert(numbers.end(), {y, x});
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = std::move(numbers),
                 .writes = {y},
                 .run = [=](const RunContext& run) {
                   run.team->For(elements, [&](int64_t begin, int64_t end) {
                     loop(run, run.At<float>(y), run.At<const float>(x), begin, end);
                   });
                   return absl::OkStatus();
                 }});
  lowering.Changed(node.inputs[0]);
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerAccumulateGradient(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const AccumulateGradientOp&>(*node.op);
  return LowerChange(lowering, node, {},
                     [scale = static_cast<float>(op.scale), overwrite = op.overwrite](
                         const RunContext&, float* sum, const float* grad, int64_t begin, int64_t end) {
                       if (overwrite) {
                         for (int64_t i = begin; i < end; ++i) sum[i] = scale * grad[i];
                       } else {
                         for (int64_t i = begin; i < end; ++i) sum[i] += scale * grad[i];
                       }
                     });
}

absl::Status LowerMovingAverage(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Region step, lowering.GetPlain(node.inputs[MovingAverageOp::kStepInput]));
  return LowerChange(
      lowering, node, {step},
      [step, op = static_cast<const MovingAverageOp&>(*node.op)](
          const RunContext& run, float* average, const float* value, int64_t begin, int64_t end) {
        const auto fresh = static_cast<float>(1 - op.DecayAfter(*run.At<const int64_t>(step)));
        for (int64_t i = begin; i < end; ++i) average[i] += fresh * (value[i] - average[i]);
      });
}

}  // namespace tandem::cpu
