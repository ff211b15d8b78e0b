#ifndef TANDEM_ENGINE_BACKEND_WORKSPACE_H_
#define TANDEM_ENGINE_BACKEND_WORKSPACE_H_

#include <cstdint>

namespace tandem {

// The memory that a backend may use for a replica beyond the planned tensors, which are the variables and
// each graph's PlanMemory arena. It serves the padding of layouts and the workspaces of algorithms, for all
// executables of a set of variables together. Admission counts on it, so a backend takes slower algorithms
// rather than more memory. The limit is kWorkspaceCapBytes plus a share of the graphs' arenas, because large
// convolutions gain most from a workspace.
inline constexpr int64_t kWorkspaceCapBytes = int64_t{64} << 20;

// Returns the part of the limit that a graph with this arena adds.
constexpr int64_t WorkspaceShareBytes(int64_t arena_bytes) { return arena_bytes / 4; }

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_WORKSPACE_H_
