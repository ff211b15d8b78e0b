#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMULATOR_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMULATOR_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/functional/function_ref.h"

// CUDA's keywords, for the emulation of kernels on the host. The threads of a block are fibers that switch at
// barriers and shuffles. Blocks run one after the other on the calling thread. For tests. Slow.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
// A host thread runs a single block at a time, so a static array belongs to the block.
#define __shared__ static thread_local

namespace tandem::cuda::emulator {

struct Index {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

// The position of the running fiber.
struct Position {
  Index thread;
  Index block;
  Index block_size;
  Index grid_size;
};
extern thread_local Position position;

inline constexpr int kWarp = 32;

// Calls `body` for each thread of each block.
void Run(Index grid, int threads, absl::FunctionRef<void()> body);

// Returns when all running threads of the block have called it.
void SyncBlock();
// Returns when the other threads of the warp have called it. Returns the bits of lane `lane`.
uint64_t Exchange(uint64_t bits, int lane);
// Returns a bit for each lane of the warp: whether its vote is true.
uint32_t Ballot(bool vote);

template <typename T>
T Shuffle(T value, int lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Exchange(bits, lane);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline int Lane() { return static_cast<int>(position.thread.x) % kWarp; }

}  // namespace tandem::cuda::emulator

#define threadIdx (::tandem::cuda::emulator::position.thread)
#define blockIdx (::tandem::cuda::emulator::position.block)
#define blockDim (::tandem::cuda::emulator::position.block_size)
#define gridDim (::tandem::cuda::emulator::position.grid_size)

inline void __syncthreads() { ::tandem::cuda::emulator::SyncBlock(); }
inline void __syncwarp(unsigned = 0xffffffffu) { ::tandem::cuda::emulator::Ballot(false); }
inline uint32_t __ballot_sync(unsigned, bool vote) { return ::tandem::cuda::emulator::Ballot(vote); }
template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  return ::tandem::cuda::emulator::Shuffle(value, lane);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return ::tandem::cuda::emulator::Shuffle(value, ::tandem::cuda::emulator::Lane() ^ mask);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned delta) {
  const int lane = ::tandem::cuda::emulator::Lane() + static_cast<int>(delta);
  return ::tandem::cuda::emulator::Shuffle(
      value, lane < ::tandem::cuda::emulator::kWarp ? lane : ::tandem::cuda::emulator::Lane());
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned delta) {
  const int lane = ::tandem::cuda::emulator::Lane() - static_cast<int>(delta);
  return ::tandem::cuda::emulator::Shuffle(value, lane >= 0 ? lane : ::tandem::cuda::emulator::Lane());
}
template <typename T, typename U>
T atomicAdd(T* target, U value) {
  const T old = *target;
  *target = old + static_cast<T>(value);
  return old;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline void __threadfence() {}

using std::max;
using std::min;

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_EMULATOR_H_
