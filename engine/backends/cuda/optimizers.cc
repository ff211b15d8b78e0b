#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/kernels/optimizers.h"
#include "engine/backends/cuda/offered.h"
#include "engine/backends/cuda/tensor_changes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/sgd.h"

namespace tandem::cuda {
namespace {

SgdUpdate UpdateOf(const SgdOp& op) { return {op.momentum, op.dampening, op.weight_decay, op.nesterov}; }

AdamUpdate UpdateOf(const AdamOp& op) {
  const AdamSettings& s = op.settings;
  return {s.beta1, s.beta2, s.epsilon, s.weight_decay, s.decoupled, s.amsgrad};
}

NadamUpdate UpdateOf(const NadamOp& op) {
  const NadamSettings& s = op.settings;
  return {s.beta1, s.beta2, s.epsilon, s.weight_decay, s.decoupled, s.momentum_decay};
}

AdamaxUpdate UpdateOf(const AdamaxOp& op) {
  const AdamaxSettings& s = op.settings;
  return {s.beta1, s.beta2, s.epsilon, s.weight_decay};
}

LambUpdate UpdateOf(const LambOp& op) {
  const LambSettings& s = op.settings;
  return {s.beta1, s.beta2, s.epsilon, s.weight_decay};
}

AdagradUpdate UpdateOf(const AdagradOp& op) {
  const AdagradSettings& s = op.settings;
  return {s.lr_decay, s.epsilon, s.weight_decay, s.initial_accumulator};
}

AdadeltaUpdate UpdateOf(const AdadeltaOp& op) {
  return {op.settings.rho, op.settings.epsilon, op.settings.weight_decay};
}

RmspropUpdate UpdateOf(const RmspropOp& op) {
  const RmspropSettings& s = op.settings;
  return {s.alpha, s.epsilon, s.weight_decay, s.momentum, s.centered};
}

LionUpdate UpdateOf(const LionOp& op) {
  return {op.settings.beta1, op.settings.beta2, op.settings.weight_decay};
}

// Returns the change of a parameter's update. The states have the parameter's layout.
absl::StatusOr<TensorChanges::Change> ChangeOf(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  TensorChanges::Change change;
  change.target = home.region;
  change.elements = home.layout.elements();
  TANDEM_ASSIGN_OR_RETURN(change.source, ChangeSourceOf(lowering, node.inputs[1], home.layout));
  const size_t states = static_cast<const UpdateOp&>(*node.op).states().size();
  for (size_t i = 0; i < states; ++i) {
    const ValueId id = node.inputs[4 + i];
    TANDEM_RETURN_IF_ERROR(lowering.SettleVariable(id, home.layout));
    TANDEM_ASSIGN_OR_RETURN(const Place state, lowering.HomeAsMade(id));
    if (!(state.layout == home.layout)) {
      return absl::InternalError("an optimizer's state lies in another layout than its parameter");
    }
    change.states.push_back(state.region);
  }
  return change;
}

// Adds a single step for this parameter and all others with the same kind of update.
template <typename Op>
absl::Status LowerUpdate(Lowering& lowering, const Node& node) {
  const auto update = UpdateOf(static_cast<const Op&>(*node.op));
  const auto alike = [&](const Node& other) {
    return other.op->kind() == node.op->kind() && other.inputs[2] == node.inputs[2] &&
           other.inputs[3] == node.inputs[3] && ApplyOf(other) == ApplyOf(node) &&
           UpdateOf(static_cast<const Op&>(*other.op)) == update;
  };
  const std::vector<const Node*> nodes = TakeTogether(lowering, node, alike);
  TensorChanges changes;
  for (const Node* each : nodes) {
    TANDEM_ASSIGN_OR_RETURN(TensorChanges::Change change, ChangeOf(lowering, *each));
    changes.Add(std::move(change));
  }
  TANDEM_ASSIGN_OR_RETURN(const Region rate, lowering.GetPlain(node.inputs[2]));
  TANDEM_ASSIGN_OR_RETURN(const Region step_number, lowering.GetPlain(node.inputs[3]));
  Step step = {.name = std::string(node.op->kind()), .reads = {rate, step_number}};
  TANDEM_ASSIGN_OR_RETURN(const ApplyFlag apply, ApplyFlag::Of(lowering, ApplyOf(node), step));
  Region scratch;
  if (const int64_t bytes = UpdateScratchBytes(update, changes.tensors(), changes.pieces()); bytes > 0) {
    scratch = lowering.Scratch(bytes);
    step.writes.push_back(scratch);
  }
  const auto bound = std::move(changes).Bind(step);
  step.run = [=](const RunContext& run) {
    RunUpdate(update, apply.On(bound->table, run),
              {run.At<const double>(rate), run.At<const int64_t>(step_number)},
              scratch.buffer < 0 ? nullptr : run.At(scratch), run.stream);
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
  for (const Node* each : nodes) {
    for (const int i : each->op->MutatedInputs()) lowering.Changed(each->inputs[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> OptimizerOps() {
  static constexpr Offered kOps[] = {
      {"adadelta", LowerUpdate<AdadeltaOp>}, {"adagrad", LowerUpdate<AdagradOp>},
      {"adam", LowerUpdate<AdamOp>},         {"adamax", LowerUpdate<AdamaxOp>},
      {"lamb", LowerUpdate<LambOp>},         {"lion", LowerUpdate<LionOp>},
      {"nadam", LowerUpdate<NadamOp>},       {"rmsprop", LowerUpdate<RmspropOp>},
      {"sgd", LowerUpdate<SgdOp>},
  };
  return kOps;
}

}  // namespace tandem::cuda
