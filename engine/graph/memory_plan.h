#ifndef TANDEM_ENGINE_GRAPH_MEMORY_PLAN_H_
#define TANDEM_ENGINE_GRAPH_MEMORY_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

// Where each intermediate value of a graph lies in one arena.
struct MemoryPlan {
  // By ValueId: offset in bytes, -1 for a value that is not in the arena (inputs, variables, constants).
  std::vector<int64_t> offsets;
  // By ValueId: the node before which, and after which, the value is dead.
  std::vector<NodeId> first_use;
  std::vector<NodeId> last_use;
  // Size of the arena.
  int64_t arena_bytes = 0;
};

// Bytes that a value takes; a backend gives its own where its layouts pad.
using SizeOfValue = std::function<int64_t(const Value&)>;

// Dense row-major size.
int64_t DenseBytes(const Value& value);

// Places values whose lifetimes overlap apart: greedy by size, largest first, at the lowest offset that is
// free (Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net Inference", greedy by size).
// Values that an op may compute in place share memory where their lifetimes allow. Outputs of the graph live
// to its end. Offsets are multiples of 64. Deterministic.
MemoryPlan PlanMemory(const Graph& graph, const SizeOfValue& size = DenseBytes);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_MEMORY_PLAN_H_
