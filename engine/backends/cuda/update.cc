#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/unscale.h"
#include "engine/backends/cuda/kernels/update.h"
#include "engine/backends/cuda/offered.h"
#include "engine/backends/cuda/tensor_changes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/moving_average.h"
#include "engine/graph/ops/unscale_gradients.h"

namespace tandem::cuda {
namespace {

// Values that were computed in their slots of the bucket stay there. The others are copied into their slots
// first.
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
  lowering.Emit({.name = "all_reduce",
                 .reads = {bucket},
                 .writes = {bucket},
                 .on_host = true,
                 .reduced = bucket,
                 .reduced_elements = elements});
  return absl::OkStatus();
}

// Returns the apply input of a moving_average.
ValueId ApplyOfAverage(const Node& node) {
  constexpr int kApply = MovingAverageOp::kApplyInput;
  return node.inputs.size() > kApply ? node.inputs[kApply] : kNoValue;
}

// Changes input 0, a variable, by input 1, for all nodes of `together`, unless `apply_id` is 0. The launch
// also reads `numbers`. `launch(table, run)`.
template <typename Launch>
absl::Status LowerChanges(Lowering& lowering, const std::vector<const Node*>& together, ValueId apply_id,
                          std::vector<Region> numbers, Launch launch) {
  TensorChanges changes;
  for (const Node* node : together) {
    TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, *node, node->inputs[0]));
    // The variable takes the layout of its source: of the parameter, or of the gradient.
    TANDEM_ASSIGN_OR_RETURN(const Place source, lowering.HomeAsMade(node->inputs[1]));
    TANDEM_RETURN_IF_ERROR(lowering.SettleVariable(node->inputs[0], source.layout));
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node->inputs[0]));
    TensorChanges::Change change = {.target = home.region, .elements = home.layout.elements()};
    TANDEM_ASSIGN_OR_RETURN(change.source, ChangeSourceOf(lowering, node->inputs[1], home.layout));
    changes.Add(std::move(change));
  }
  Step step = {.name = std::string(together[0]->op->kind()), .reads = std::move(numbers)};
  TANDEM_ASSIGN_OR_RETURN(const ApplyFlag apply, ApplyFlag::Of(lowering, apply_id, step));
  const auto bound = std::move(changes).Bind(step);
  step.run = [=](const RunContext& run) {
    launch(apply.On(bound->table, run), run);
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
  return LowerChanges(lowering, TakeTogether(lowering, node, alike), kNoValue, {},
                      [scale = static_cast<float>(op.scale), overwrite = op.overwrite](
                          const ChangeTable& table, const RunContext& run) {
                        if (overwrite) {
                          ScaleTensors(table, scale, run.stream);
                        } else {
                          AddTensors(table, scale, run.stream);
                        }
                      });
}

absl::Status LowerMovingAverage(Lowering& lowering, const Node& node) {
  constexpr int kStep = MovingAverageOp::kStepInput;
  const double decay = static_cast<const MovingAverageOp&>(*node.op).decay;
  const auto alike = [&](const Node& other) {
    return other.op->kind() == node.op->kind() && ApplyOfAverage(other) == ApplyOfAverage(node) &&
           other.inputs[kStep] == node.inputs[kStep] &&
           static_cast<const MovingAverageOp&>(*other.op).decay == decay;
  };
  TANDEM_ASSIGN_OR_RETURN(const Region step, lowering.GetPlain(node.inputs[kStep]));
  return LowerChanges(lowering, TakeTogether(lowering, node, alike), ApplyOfAverage(node), {step},
                      [decay, step](const ChangeTable& table, const RunContext& run) {
                        AverageTensors(table, decay, run.At<const int64_t>(step), run.stream);
                      });
}

// Computes output `output` from its input `input`, a gradient. It reuses the memory of a bucket, which has no
// other reader after its reduction.
absl::Status AddNewGradient(Lowering& lowering, const Node& node, int input, int output,
                            TensorChanges& changes) {
  const ValueId from = node.inputs[input];
  const ValueId to = node.outputs[output];
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, from));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(from));
  const Layout layout = home.layout.WithType(DType::kFloat32);
  TANDEM_ASSIGN_OR_RETURN(const ChangeSource source, ChangeSourceOf(lowering, from, layout));
  const bool in_bucket = lowering.InBucket(home.region);
  const bool reduced = in_bucket && lowering.uses().OnlyReader(from, node.op->kind()) != nullptr;
  Region target = home.region;
  if (reduced) {
    lowering.Alias(to, home);
  } else {
    target = lowering.Define(to, layout);
  }
  changes.Add({.target = target,
               .source = source,
               .elements = layout.elements(),
               .is_new = true,
               .may_replace = !in_bucket});
  return absl::OkStatus();
}

absl::Status LowerClipGradients(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const ClipGradientsOp&>(*node.op);
  TensorChanges changes;
  for (int i = 0; i < op.count; ++i) {
    TANDEM_RETURN_IF_ERROR(AddNewGradient(lowering, node, i, i, changes));
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

// All gradients first, then the results of their check.
absl::Status LowerUnscaleGradients(Lowering& lowering, const Node& node) {
  using Op = UnscaleGradientsOp;
  const auto& op = static_cast<const Op&>(*node.op);
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  std::vector<Region> numbers;
  for (int i = 0; i < Op::kFirstGradient; ++i) {
    TANDEM_ASSIGN_OR_RETURN(numbers.emplace_back(), lowering.GetPlain(node.inputs[i]));
  }
  TensorChanges changes;
  for (int i = 0; i < op.count; ++i) {
    TANDEM_RETURN_IF_ERROR(
        AddNewGradient(lowering, node, Op::kFirstGradient + i, Op::kFirstResult + i, changes));
  }
  const Region apply = lowering.Define(node.outputs[0], Layout::Plain(DType::kFloat64, Shape()));
  const Region taken = lowering.Define(node.outputs[1], Layout::Plain(DType::kInt64, Shape()));
  const Region scratch = lowering.Scratch(UnscaleScratchBytes(changes.pieces()));
  Step step = {.name = "unscale_gradients", .reads = numbers, .writes = {scratch, apply, taken}};
  for (const int i : op.MutatedInputs()) step.writes.push_back(numbers[i]);
  const auto bound = std::move(changes).Bind(step);
  LossScaleRule rule;
  rule.growth_factor = op.settings.growth_factor;
  rule.backoff_factor = op.settings.backoff_factor;
  rule.growth_interval = op.settings.growth_interval;
  rule.least = Op::kLeastScale;
  rule.most = Op::kMostScale;
  step.run = [=](const RunContext& run) {
    const LossScaleState state = {
        run.At<float>(numbers[0]),  run.At<double>(numbers[1]),        run.At<double>(numbers[2]),
        run.At<double>(numbers[3]), run.At<const int64_t>(numbers[4]), run.At<double>(apply),
        run.At<int64_t>(taken)};
    UnscaleTensors(bound->table, rule, state, run.At(scratch), run.stream);
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
  for (const int i : op.MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> UpdateOps() {
  static constexpr Offered kOps[] = {
      {"accumulate_gradient", LowerAccumulateGradient}, {"all_reduce", LowerAllReduce},
      {"clip_gradients", LowerClipGradients},           {"moving_average", LowerMovingAverage},
      {"unscale_gradients", LowerUnscaleGradients},
  };
  return kOps;
}

}  // namespace tandem::cuda
