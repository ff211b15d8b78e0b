#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_LIMITS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_LIMITS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tandem::cuda {

inline constexpr int kThreads = 256;  // The default for a block.

// CUDA refuses larger grids.
inline constexpr uint64_t kMostGridX = 2147483647;
inline constexpr uint64_t kMostGridY = 65535;
inline constexpr uint64_t kMostGridZ = 65535;

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// The limits of launches. They apply to the whole process, whose GPUs all serve the same job. Each opened
// device sets the same limits, perhaps during a launch of another.
struct LaunchLimits {
  int threads = 1024;              // Of a block. At least 128, which is enough for every kernel.
  uint64_t blocks = ~uint64_t{0};  // Of a launch.
};
inline std::atomic<int> most_threads = LaunchLimits().threads;
inline std::atomic<uint64_t> most_blocks = LaunchLimits().blocks;
inline void SetLaunchLimits(const LaunchLimits& limits) {
  most_threads.store(limits.threads, std::memory_order_relaxed);
  most_blocks.store(limits.blocks, std::memory_order_relaxed);
}
inline uint64_t MostBlocks() { return most_blocks.load(std::memory_order_relaxed); }

// Returns the threads of a block that wants `wanted`.
inline int Threads(int wanted = kThreads) {
  const int most = most_threads.load(std::memory_order_relaxed);
  return wanted < most ? wanted : most;
}

// Returns the part of the grid that is launched.
inline Grid WithinLimits(const Grid& grid) {
  uint64_t left = MostBlocks();
  const auto take = [&left](unsigned wanted, uint64_t most) {
    most = std::clamp<uint64_t>(left, 1, most);
    const unsigned taken = wanted < most ? wanted : static_cast<unsigned>(most);
    left /= taken;
    return taken;
  };
  Grid part;
  part.x = take(grid.x, kMostGridX);
  part.y = take(grid.y, kMostGridY);
  part.z = take(grid.z, kMostGridZ);
  return part;
}

// Calls `launch(first, count)` for each necessary launch of `blocks` blocks or lines of blocks, with at most
// `most` in a launch.
template <typename Function>
void InParts(unsigned blocks, uint64_t most, const Function& launch) {
  const unsigned step = most == 0 ? 1 : most < blocks ? static_cast<unsigned>(most) : blocks;
  for (unsigned first = 0; first < blocks; first += step) {
    launch(first, blocks - first < step ? blocks - first : step);
  }
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_LIMITS_H_
