#ifndef TANDEM_ENGINE_BACKEND_MEMORY_GROUPS_H_
#define TANDEM_ENGINE_BACKEND_MEMORY_GROUPS_H_

#include <cstdint>
#include <string>

#include "engine/graph/graph.h"

namespace tandem {

// What a replica's memory on its device is for, in bytes.
struct MemoryGroups {
  int64_t parameters = 0;
  int64_t optimizer_state = 0;
  int64_t statistics = 0;   // Running statistics.
  int64_t activations = 0;  // Arenas: what is computed between inputs and outputs, gradients among it.
  int64_t workspace = 0;    // Of algorithms, and padding.
  int64_t data = 0;         // Batches, samples that lie on the device, meters.

  int64_t total() const;
  // The group that a variable belongs to.
  static int64_t MemoryGroups::*GroupOf(VariableKind kind);
  // "optimizer state".
  static const char* NameOf(int64_t MemoryGroups::*group);
  // "activations 120.0 MiB, parameters 3.4 MiB": the largest first, without what is 0.
  std::string ToString() const;
};

// "120.0 MiB".
std::string MebibytesOf(int64_t bytes);

// Scratch memory of a convolution or product on a GPU, at most, where nobody says otherwise.
inline constexpr int64_t kGpuWorkspaceLimitBytes = int64_t{256} << 20;

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_MEMORY_GROUPS_H_
