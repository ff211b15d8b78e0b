#include "engine/graph/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tandem {
namespace {

constexpr int64_t kAlignment = 64;

// Values that share a piece of memory one after the other. Each value but the first is computed in place over
// its predecessor.
struct Block {
  int64_t bytes = 0;
  NodeId first = kNoNode;
  NodeId last = kNoNode;
  int64_t offset = 0;
};

bool InArena(const Value& value) { return value.role == ValueRole::kIntermediate; }

void FindLifetimes(const Graph& graph, MemoryPlan* plan) {
  plan->first_use.assign(graph.values().size(), kNoNode);
  plan->last_use.assign(graph.values().size(), kNoNode);
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) {
      if (plan->first_use[input] == kNoNode) plan->first_use[input] = node.id;
      plan->last_use[input] = node.id;
    }
    // An output without readers still needs memory.
    for (const ValueId output : node.outputs) plan->first_use[output] = plan->last_use[output] = node.id;
  }
  const NodeId end = static_cast<NodeId>(graph.nodes().size());
  for (const ValueId output : graph.outputs()) plan->last_use[output] = end;
}

// Returns the input of `node` whose memory `output` may reuse, or kNoValue.
ValueId InPlaceSource(const Graph& graph, const Node& node, int output, const MemoryPlan& plan,
                      const std::vector<int64_t>& bytes, const std::vector<bool>& taken) {
  for (const auto& [to, from] : node.op->InPlace()) {
    if (to != output) continue;
    const ValueId source = node.inputs[from];
    const bool read_once = std::count(node.inputs.begin(), node.inputs.end(), source) == 1;
    if (InArena(graph.value(source)) && plan.last_use[source] == node.id && read_once && !taken[source] &&
        bytes[source] == bytes[node.outputs[output]]) {
      return source;
    }
  }
  return kNoValue;
}

// Gives each block the lowest free offset among the placed blocks that live at the same time.
int64_t Place(std::vector<Block>& blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&blocks](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  // Sorted by offset. Copies lie together in memory, and this loop takes most of the time.
  std::vector<Block> placed;
  int64_t arena_bytes = 0;
  for (const size_t index : order) {
    Block& block = blocks[index];
    int64_t offset = 0;
    for (const Block& other : placed) {
      if (other.last < block.first || block.last < other.first) continue;
      if (other.offset - offset >= block.bytes) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    block.offset = offset;
    arena_bytes = std::max(arena_bytes, offset + block.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [](const Block& a, const Block& b) { return a.offset < b.offset; }),
                  block);
  }
  return arena_bytes;
}

}  // namespace

int64_t DenseBytes(const Value& value) { return value.shape.elements() * SizeOf(value.dtype); }

MemoryPlan PlanMemory(const Graph& graph, const SizeOfValue& size) {
  MemoryPlan plan;
  plan.offsets.assign(graph.values().size(), -1);
  FindLifetimes(graph, &plan);

  std::vector<int64_t> bytes(graph.values().size(), 0);
  for (const Value& value : graph.values()) {
    if (InArena(value)) bytes[value.id] = (size(value) + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::vector<Block> blocks;
  std::vector<size_t> block_of(graph.values().size(), 0);
  std::vector<bool> taken(graph.values().size(), false);
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      const ValueId source = InPlaceSource(graph, node, static_cast<int>(i), plan, bytes, taken);
      if (source != kNoValue) {
        taken[source] = true;
        block_of[output] = block_of[source];
        Block& block = blocks[block_of[source]];
        block.last = std::max(block.last, plan.last_use[output]);
      } else {
        block_of[output] = blocks.size();
        blocks.push_back({bytes[output], plan.first_use[output], plan.last_use[output]});
      }
    }
  }
  plan.arena_bytes = Place(blocks);
  for (const Value& value : graph.values()) {
    if (InArena(value)) plan.offsets[value.id] = blocks[block_of[value.id]].offset;
  }
  return plan;
}

}  // namespace tandem
