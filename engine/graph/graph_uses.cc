#include "engine/graph/graph_uses.h"

#include <algorithm>

#include "engine/graph/ops/update.h"

namespace tandem {

GraphUses::GraphUses(const Graph& graph)
    : graph_(graph), readers_(graph.values().size()), is_output_(graph.values().size(), false) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) {
      std::vector<NodeId>& readers = readers_[input];
      if (readers.empty() || readers.back() != node.id) readers.push_back(node.id);
    }
  }
  for (const ValueId output : graph.outputs()) is_output_[output] = true;
}

const Node* GraphUses::MakerOf(ValueId id, absl::string_view kind) const {
  const NodeId producer = graph_.value(id).producer;
  if (producer == kNoNode || graph_.node(producer).op->kind() != kind) return nullptr;
  return &graph_.node(producer);
}

const Node* GraphUses::OnlyReader(ValueId id, absl::string_view kind) const {
  if (is_output_[id] || readers_[id].size() != 1) return nullptr;
  const Node& node = graph_.node(readers_[id][0]);
  const bool once = std::count(node.inputs.begin(), node.inputs.end(), id) == 1;
  return once && node.op->kind() == kind ? &node : nullptr;
}

bool GraphUses::ChangesBetween(ValueId id, NodeId first, NodeId last) const {
  for (const NodeId reader : readers_[id]) {
    if (reader <= first || reader >= last) continue;
    const Node& node = graph_.node(reader);
    for (const int i : node.op->MutatedInputs()) {
      if (node.inputs[i] == id) return true;
    }
  }
  return false;
}

ValueId GraphUses::ParameterOf(ValueId grad) const {
  for (const NodeId id : readers_[grad]) {
    const Node& node = graph_.node(id);
    const bool updates = dynamic_cast<const UpdateOp*>(node.op.get()) != nullptr;
    if (updates && node.inputs[1] == grad) return node.inputs[0];
    if (node.op->kind() != "all_reduce" && node.op->kind() != "unscale_gradients" &&
        node.op->kind() != "clip_gradients")
      continue;
    for (const auto& [output, input] : node.op->InPlace()) {
      if (node.inputs[input] != grad) continue;
      const ValueId parameter = ParameterOf(node.outputs[output]);
      if (parameter != kNoValue) return parameter;
    }
  }
  return kNoValue;
}

}  // namespace tandem
