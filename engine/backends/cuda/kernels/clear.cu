#include "engine/backends/cuda/kernels/clear.h"

#include <algorithm>
#include <cstdint>

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// A kernel's parameters have 4 KiB at most.
constexpr int kMostRanges = 64;
struct ClearTable {
  unsigned char* begins[kMostRanges];
  int64_t bytes[kMostRanges];
};

// Each layer of the grid has a range.
TANDEM_KERNEL ClearKernel(Grid grid, ClearTable table) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    unsigned char* const begin = table.begins[block.y];
    const int64_t bytes = table.bytes[block.y];
    const int64_t first = static_cast<int64_t>(block.x) * blockDim.x + threadIdx.x;
    const int64_t stride = static_cast<int64_t>(grid.x) * blockDim.x;
    using Wide = Pack<float, 4>;
    const bool is_wide = reinterpret_cast<uintptr_t>(begin) % sizeof(Wide) == 0;
    const int64_t packs = is_wide ? bytes / static_cast<int64_t>(sizeof(Wide)) : 0;
    for (int64_t i = first; i < packs; i += stride) Store(Wide{}, reinterpret_cast<Wide*>(begin) + i);
    const int64_t rest = packs * static_cast<int64_t>(sizeof(Wide));
    for (int64_t i = rest + first; i < bytes; i += stride) begin[i] = 0;
  }
}

}  // namespace

void ClearMemory(absl::Span<const MemoryRange> ranges, Stream stream) {
  constexpr int64_t kBytesOfThread = 64;
  constexpr int64_t kMostBlocksOfRange = 64;
  for (; !ranges.empty(); ranges.remove_prefix(std::min<size_t>(ranges.size(), kMostRanges))) {
    const auto count = static_cast<unsigned>(std::min<size_t>(ranges.size(), kMostRanges));
    ClearTable table = {};
    int64_t most = 1;
    for (unsigned i = 0; i < count; ++i) {
      auto* begin = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(ranges[i].begin));
      table.begins[i] = begin;
      table.bytes[i] = ranges[i].end - ranges[i].begin;
      most = std::max(most, table.bytes[i]);
    }
    const int64_t of_block = kBytesOfThread * Threads();
    const auto blocks = static_cast<unsigned>(std::min((most + of_block - 1) / of_block, kMostBlocksOfRange));
    Launch(ClearKernel, {blocks, count}, Threads(), stream, table);
  }
}

}  // namespace tandem::cuda
