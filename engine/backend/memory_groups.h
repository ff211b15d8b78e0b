#ifndef TANDEM_ENGINE_BACKEND_MEMORY_GROUPS_H_
#define TANDEM_ENGINE_BACKEND_MEMORY_GROUPS_H_

#include <cstdint>
#include <string>

#include "engine/graph/graph.h"

namespace tandem {

// The uses of a replica's memory on its device, in bytes.
struct MemoryGroups {
  int64_t parameters = 0;
  int64_t optimizer_state = 0;
  int64_t statistics = 0;   // Running statistics.
  int64_t activations = 0;  // Arenas: values between inputs and outputs, with the gradients.
  int64_t workspace = 0;    // Workspaces of algorithms, and padding.
  int64_t data = 0;         // Batches, samples on the device, and meters.

  int64_t total() const;
  // Returns the group of a variable.
  static int64_t MemoryGroups::*GroupOf(VariableKind kind);
  // Returns for example "optimizer state".
  static const char* NameOf(int64_t MemoryGroups::*group);
  // Returns for example "activations 120.0 MiB, parameters 3.4 MiB": the largest group first, without empty
  // groups.
  std::string ToString() const;
};

// Returns for example "120.0 MiB".
std::string MebibytesOf(int64_t bytes);

// The default limit on the scratch memory of a convolution or product on a GPU.
inline constexpr int64_t kGpuWorkspaceLimitBytes = int64_t{256} << 20;

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_MEMORY_GROUPS_H_
