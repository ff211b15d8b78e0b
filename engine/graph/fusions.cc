#include "engine/graph/fusions.h"

#include <algorithm>

namespace tandem {
namespace {

bool IsOf(const std::vector<absl::string_view>& kinds, const Node& node) {
  return std::find(kinds.begin(), kinds.end(), node.op->kind()) != kinds.end();
}

// Returns whether `norm` normalises the input of `grad`, and keeps or takes the statistics that `grad` reads.
bool IsNormOf(const Node& norm, const Node& grad) {
  const bool training = norm.op->kind() == "batch_norm" && grad.op->kind() == "batch_norm_grad" &&
                        norm.outputs[1] == grad.inputs[3] && norm.outputs[2] == grad.inputs[4];
  const bool inference = norm.op->kind() == "batch_norm_inference" &&
                         grad.op->kind() == "batch_norm_inference_grad" && norm.inputs[3] == grad.inputs[3] &&
                         norm.inputs[4] == grad.inputs[4];
  return (training || inference) && norm.inputs[0] == grad.inputs[0] && norm.inputs[1] == grad.inputs[2];
}

}  // namespace

Fusions::Fusions(const GraphUses& uses, const FusableKinds& kinds) {
  for (const Node& node : uses.graph().nodes()) {
    if (IsOf(kinds.before_relu, node) || IsOf(kinds.norms, node)) AddForward(uses, kinds, node);
  }
  for (const Node& node : uses.graph().nodes()) {
    if (node.op->kind() == "relu_grad") AddBackward(uses, kinds, node);
  }
}

void Fusions::AddForward(const GraphUses& uses, const FusableKinds& kinds, const Node& first) {
  ForwardGroup group = {.first = &first};
  const ValueId y = first.outputs[0];
  group.relu = uses.OnlyReader(y, "relu");
  const Node* add = IsOf(kinds.norms, first) ? uses.OnlyReader(y, "add") : nullptr;
  if (add != nullptr) {
    const ValueId other = add->inputs[0] == y ? add->inputs[1] : add->inputs[0];
    const NodeId producer = uses.graph().value(other).producer;
    // If two normalisations are added, the later one adds.
    const bool other_is_later = producer != kNoNode && producer > first.id &&
                                IsOf(kinds.norms, uses.graph().node(producer)) &&
                                uses.OnlyReader(other, "add") == add;
    if (!other_is_later) {
      group.add = add;
      group.addend = other;
      group.relu = uses.OnlyReader(add->outputs[0], "relu");
    }
  }
  if (group.add == nullptr && group.relu == nullptr) return;
  const ForwardGroup& added = forward_.emplace(first.id, group).first->second;
  if (group.add != nullptr) with_sum_.emplace(group.add->id, &added);
}

void Fusions::AddBackward(const GraphUses& uses, const FusableKinds& kinds, const Node& relu_grad) {
  const Graph& graph = uses.graph();
  const ValueId dx = relu_grad.outputs[0];
  BackwardGroup group = {.relu_grad = &relu_grad};
  for (const NodeId id : uses.readers(dx)) {
    const Node& reader = graph.node(id);
    if (!IsOf(kinds.norm_grads, reader) || reader.inputs[1] != dx) continue;
    group.norm_grad = &reader;
    break;
  }
  if (group.norm_grad == nullptr) return;
  group.shared = uses.OnlyReader(dx, group.norm_grad->op->kind()) != group.norm_grad;
  const ValueId dy = relu_grad.inputs[1];
  const Node* add = uses.MakerOf(dy, "add");
  if (add != nullptr && uses.OnlyReader(dy, "relu_grad") == &relu_grad && with_sum_.count(add->id) == 0) {
    group.add = add;
    backward_sums_.insert(add->id);
  }
  const Node* relu = uses.MakerOf(relu_grad.inputs[0], "relu");
  const NodeId before = relu == nullptr ? kNoNode : graph.value(relu->inputs[0]).producer;
  if (before != kNoNode && IsNormOf(graph.node(before), *group.norm_grad)) group.norm = &graph.node(before);
  backward_.emplace(relu_grad.id, group);
}

const ForwardGroup* Fusions::From(const Node& first) const {
  const auto found = forward_.find(first.id);
  return found == forward_.end() ? nullptr : &found->second;
}

const ForwardGroup* Fusions::WithSum(const Node& add) const {
  const auto found = with_sum_.find(add.id);
  return found == with_sum_.end() ? nullptr : found->second;
}

const BackwardGroup* Fusions::Backward(const Node& relu_grad) const {
  const auto found = backward_.find(relu_grad.id);
  return found == backward_.end() ? nullptr : &found->second;
}

}  // namespace tandem
