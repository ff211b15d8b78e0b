#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_LIMITS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_LIMITS_H_

#include <atomic>
#include <cstdint>

namespace tandem::cuda {

inline constexpr int kThreads = 256;  // Of a block, unless a kernel has a reason for others.

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// What launches have at most. Of the whole process, whose GPUs are all one job's: each device that is opened
// sets the same, perhaps while another launches.
struct LaunchLimits {
  int threads = 1024;              // Of a block: at least 128, which every kernel can do with.
  uint64_t blocks = ~uint64_t{0};  // Of a launch.
};
inline std::atomic<int> most_threads = LaunchLimits().threads;
inline std::atomic<uint64_t> most_blocks = LaunchLimits().blocks;
inline void SetLaunchLimits(const LaunchLimits& limits) {
  most_threads.store(limits.threads, std::memory_order_relaxed);
  most_blocks.store(limits.blocks, std::memory_order_relaxed);
}
inline uint64_t MostBlocks() { return most_blocks.load(std::memory_order_relaxed); }

// The threads of a block that is to have so many.
inline int Threads(int wanted = kThreads) {
  const int most = most_threads.load(std::memory_order_relaxed);
  return wanted < most ? wanted : most;
}

// The part of the grid that is launched.
inline Grid WithinLimits(const Grid& grid) {
  uint64_t left = MostBlocks();
  const auto take = [&left](unsigned wanted) {
    const unsigned taken = wanted < left ? wanted : left > 0 ? static_cast<unsigned>(left) : 1;
    left /= taken;
    return taken;
  };
  Grid part;
  part.x = take(grid.x);
  part.y = take(grid.y);
  part.z = take(grid.z);
  return part;
}

// Calls `launch(first, count)` for each launch that so many blocks, or lines of blocks, take, where one has
// at most so many.
template <typename Function>
void InParts(unsigned blocks, uint64_t most, const Function& launch) {
  const unsigned step = most == 0 ? 1 : most < blocks ? static_cast<unsigned>(most) : blocks;
  for (unsigned first = 0; first < blocks; first += step) {
    launch(first, blocks - first < step ? blocks - first : step);
  }
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LAUNCH_LIMITS_H_
