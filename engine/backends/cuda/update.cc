#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/update.h"
#include "engine/backends/cuda/offered.h"
#include "engine/backends/cuda/tensor_changes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/moving_average.h"

namespace tandem::cuda {
namespace {

// What was made in its place in the bucket stays there; the rest is copied, to be reduced there.
absl::Status LowerAllReduce(Lowering& lowering, const Node& node) {
  const auto scale = static_cast<float>(static_cast<const AllReduceOp&>(*node.op).scale);
  Region bucket;
  TensorChanges changes;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[i]));
    TANDEM_ASSIGN_OR_RETURN(const Place slot, lowering.BucketSlot(node, i));
    TANDEM_ASSIGN_OR_RETURN(const ChangeSource source, ChangeSourceOf(lowering, node.inputs[i], slot.layout));
    if (i == 0) bucket = slot.region;
    const bool is_there = source.region.buffer == slot.region.buffer;
    if (!is_there || scale != 1) {
      changes.Add(
          {.target = slot.region, .source = source, .elements = slot.layout.elements(), .is_new = true});
    }
    lowering.Alias(node.outputs[i], slot);
  }
  if (changes.tensors() > 0) {
    Step step = {.name = "all_reduce: scale"};
    const auto bound = std::move(changes).Bind(step);
    step.run = [=](const RunContext& run) {
      ScaleTensors(bound->table, scale, run.stream);
      return absl::OkStatus();
    };
    lowering.Emit(std::move(step));
  }
  const int64_t elements = lowering.buffers()[bucket.buffer].bytes / SizeOf(DType::kFloat32);
  lowering.Emit(
      {.name = "all_reduce",
       .reads = {bucket},
       .writes = {bucket},
       .run = [=](const RunContext& run) -> absl::Status {
         if (run.communicator == nullptr || run.communicator->world_size() == 1) {
           return absl::OkStatus();
         }
         return run.communicator->AllReduce({run.At(bucket), elements, DType::kFloat32}, ReduceOp::kSum);
       },
       .on_host = true});
  return absl::OkStatus();
}

// Changes input 0, a variable, by input 1, and so for the nodes `together`. `launch(table, stream)`.
template <typename Launch>
absl::Status LowerChanges(Lowering& lowering, const std::vector<const Node*>& together, Launch launch) {
  TensorChanges changes;
  for (const Node* node : together) {
    TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, *node, node->inputs[0]));
    // The variable takes the layout of what it follows: of the parameter, or of the gradient.
    TANDEM_ASSIGN_OR_RETURN(const Place source, lowering.Home(node->inputs[1]));
    TANDEM_RETURN_IF_ERROR(lowering.SettleVariable(node->inputs[0], source.layout));
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node->inputs[0]));
    TensorChanges::Change change = {.target = home.region, .elements = home.layout.elements()};
    TANDEM_ASSIGN_OR_RETURN(change.source, ChangeSourceOf(lowering, node->inputs[1], home.layout));
    changes.Add(std::move(change));
  }
  Step step = {.name = std::string(together[0]->op->kind())};
  const auto bound = std::move(changes).Bind(step);
  step.run = [=](const RunContext& run) {
    launch(bound->table, run.stream);
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
  for (const Node* node : together) lowering.Changed(node->inputs[0]);
  return absl::OkStatus();
}

absl::Status LowerAccumulateGradient(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const AccumulateGradientOp&>(*node.op);
  const auto alike = [&](const Node& other) {
    if (other.op->kind() != op.kind()) return false;
    const auto& own = static_cast<const AccumulateGradientOp&>(*other.op);
    return own.scale == op.scale && own.overwrite == op.overwrite;
  };
  return LowerChanges(lowering, TakeTogether(lowering, node, alike),
                      [scale = static_cast<float>(op.scale), overwrite = op.overwrite](
                          const ChangeTable& table, Stream stream) {
                        if (overwrite) {
                          ScaleTensors(table, scale, stream);
                        } else {
                          AddTensors(table, scale, stream);
                        }
                      });
}

absl::Status LowerMovingAverage(Lowering& lowering, const Node& node) {
  const double decay = static_cast<const MovingAverageOp&>(*node.op).decay;
  const auto alike = [&](const Node& other) {
    return other.op->kind() == node.op->kind() &&
           static_cast<const MovingAverageOp&>(*other.op).decay == decay;
  };
  return LowerChanges(lowering, TakeTogether(lowering, node, alike),
                      [fresh = static_cast<float>(1 - decay)](const ChangeTable& table, Stream stream) {
                        AverageTensors(table, fresh, stream);
                      });
}

absl::Status LowerClipGradients(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const ClipGradientsOp&>(*node.op);
  TensorChanges changes;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[i]));
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[i]));
    const Layout layout = home.layout.WithType(DType::kFloat32);
    TANDEM_ASSIGN_OR_RETURN(const ChangeSource source, ChangeSourceOf(lowering, node.inputs[i], layout));
    // A bucket is nobody else's once it is reduced.
    const bool reduced = lowering.MakerOf(node.inputs[i], "all_reduce") != nullptr &&
                         lowering.OnlyReader(node.inputs[i], "clip_gradients") != nullptr;
    Region target = home.region;
    if (reduced) {
      lowering.Alias(node.outputs[i], home);
    } else {
      target = lowering.Define(node.outputs[i], layout);
    }
    changes.Add({.target = target,
                 .source = source,
                 .elements = layout.elements(),
                 .is_new = true,
                 .may_replace = !reduced});
  }
  Step step = {.name = "clip_gradients"};
  const bool by_norm = op.mode == ClipGradientsOp::Mode::kByNorm;
  const Region scratch = lowering.Scratch(ClipScratchBytes(by_norm ? changes.pieces() : 0));
  step.writes = {scratch};
  const auto bound = std::move(changes).Bind(step);
  step.run = [=, limit = op.limit](const RunContext& run) {
    if (by_norm) {
      ClipTensors(bound->table, limit, ClipGradientsOp::kNormEpsilon, run.At(scratch), run.stream);
    } else {
      ClampTensors(bound->table, static_cast<float>(limit), run.stream);
    }
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> UpdateOps() {
  static constexpr Offered kOps[] = {
      {"accumulate_gradient", LowerAccumulateGradient},
      {"all_reduce", LowerAllReduce},
      {"clip_gradients", LowerClipGradients},
      {"moving_average", LowerMovingAverage},
  };
  return kOps;
}

}  // namespace tandem::cuda
