#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_PHILOX_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_PHILOX_H_

#include <cstdint>

#include "engine/backends/cuda/kernels/launch.h"

namespace tandem::cuda {

// The random sequences of engine/base/philox.h, word for word, for kernels.
struct RandomWords {
  uint32_t words[4];
};

// Returns block `block` of the sequence of (seed, purpose, step, sample).
__device__ __forceinline__ RandomWords RandomBlock(uint64_t seed, uint8_t purpose, uint64_t step,
                                                   uint64_t sample, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block);
  uint32_t c1 = static_cast<uint32_t>(sample);
  uint32_t c2 = static_cast<uint32_t>(step);
  uint32_t c3 = static_cast<uint32_t>(purpose) << 24 | (static_cast<uint32_t>(step >> 32) & 0xFF) << 16 |
                (static_cast<uint32_t>(sample >> 32) & 0xFF) << 8 |
                (static_cast<uint32_t>(block >> 32) & 0xFF);
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c0;
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_PHILOX_H_
