#ifndef TANDEM_ENGINE_GRAPH_MEMORY_PLAN_H_
#define TANDEM_ENGINE_GRAPH_MEMORY_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

// The place of each intermediate value of a graph in a single piece of memory, the arena.
struct MemoryPlan {
  // By ValueId: the offset in bytes, or -1 for a value outside the arena (input, variable, constant).
  std::vector<int64_t> offsets;
  // By ValueId: the first and the last node that need the value.
  std::vector<NodeId> first_use;
  std::vector<NodeId> last_use;
  // The size of the arena, in bytes.
  int64_t arena_bytes = 0;
};

// Returns the bytes of a value. A backend with padded layouts gives its own function.
using SizeOfValue = std::function<int64_t(const Value&)>;

// Returns the bytes of a dense row-major tensor.
int64_t DenseBytes(const Value& value);

// Plans the memory of all intermediate values. Values that live at the same time do not overlap. The
// algorithm is greedy by size: largest value first, at the lowest free offset (Pisarchyk and Lee 2020,
// "Efficient Memory Management for Deep Neural Net Inference"). Values that an op may compute in place share
// memory if their lifetimes allow it. Outputs of the graph live to its end. Offsets are multiples of 64.
// Deterministic.
MemoryPlan PlanMemory(const Graph& graph, const SizeOfValue& size = DenseBytes);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_MEMORY_PLAN_H_
