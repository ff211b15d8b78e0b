#ifndef TANDEM_ENGINE_BACKEND_WORKSPACE_H_
#define TANDEM_ENGINE_BACKEND_WORKSPACE_H_

#include <cstdint>

namespace tandem {

// What a backend may use for one replica beyond the planned tensors, which are the variables and, of each
// graph, PlanMemory's arena: padding of its layouts and workspaces of its algorithms, of all executables that
// share a set of variables together. Admission plans with it, so a backend takes slower algorithms rather
// than more. It is kWorkspaceCapBytes, and a share of the graphs' arenas together, since what large
// convolutions gain most from grows with them.
inline constexpr int64_t kWorkspaceCapBytes = int64_t{64} << 20;

// The part of the cap that a graph adds, whose arena is so large.
constexpr int64_t WorkspaceShareBytes(int64_t arena_bytes) { return arena_bytes / 4; }

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_WORKSPACE_H_
