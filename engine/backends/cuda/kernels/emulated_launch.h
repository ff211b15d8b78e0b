#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMULATED_LAUNCH_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMULATED_LAUNCH_H_

#include <cstdint>
#include <cstdlib>

#include "engine/backends/cuda/driver/emulated_give.h"
#include "engine/backends/cuda/kernels/emulator.h"
#include "engine/backends/cuda/kernels/launch_limits.h"

// The emulation of launch.h, which includes this file.

namespace tandem::cuda {

template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Parameters...), Grid grid, int threads, Stream stream, Arguments... arguments) {
  Give(stream, [=] {
    emulator::Run({grid.x, grid.y, grid.z}, threads, [&] { kernel(static_cast<Parameters>(arguments)...); });
  });
}

// For a kernel with a BlockLoop.
template <typename... Parameters, typename... Arguments>
void Launch(void (*kernel)(Grid, Parameters...), Grid grid, int threads, Stream stream,
            Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const Grid part = WithinLimits(grid);
  Give(stream, [=] {
    emulator::Run({part.x, part.y, part.z}, threads,
                  [&] { kernel(grid, static_cast<Parameters>(arguments)...); });
  });
}

inline constexpr int kMostSharedBytes = 48 << 10;
inline int MostSharedBytes() { return kMostSharedBytes; }

// Blocks run one after the other.
inline int BlocksTogether(int /*multiprocessors*/) { return 1; }

inline unsigned char* DynamicShared() {
  alignas(16) static thread_local unsigned char dynamic_shared[kMostSharedBytes];
  return dynamic_shared;
}

template <typename... Parameters, typename... Arguments>
void LaunchTogether(void (*kernel)(Parameters...), Grid grid, int threads, int shared_bytes, Stream stream,
                    Arguments... arguments) {
  // CUDA refuses such a launch.
  if (grid.x * grid.y * grid.z > BlocksTogether(1) || shared_bytes > MostSharedBytes()) std::abort();
  Launch(kernel, grid, threads, stream, arguments...);
}

template <typename Function>
void ForEach(int64_t n, Stream stream, Function function) {
  Give(stream, [=] {
    for (int64_t i = 0; i < n; ++i) function(i);
  });
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMULATED_LAUNCH_H_
