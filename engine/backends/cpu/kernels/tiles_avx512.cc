// The loops over tiles by AVX-512's products of pairs (vdpbf16ps). All functions have internal linkage, as in
// vector.inc.

#define TANDEM_TILES_NAME kAvx512TileKernels
#define TANDEM_TILES_WINOGRAD
#define TANDEM_TILES_ISA "avx512_bf16"

#if !defined(__clang__)
// g++ 12 takes the undefined vectors in its own header for faults.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstdint>

#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/cpu/kernels/vector.inc"

namespace tandem::cpu {
namespace {

// Vectors need no preparation.
struct TileScope {
  TileScope() {}
};

// Adds the products of 16 pairs of bfloat16 numbers.
inline __attribute__((always_inline)) __m512 AddPairs(__m512 sums, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// The sums of eight rows stay in registers during all steps.
template <bool kNarrow, typename Steps>
inline __attribute__((always_inline)) void AddProducts(const float* const* from, int64_t from_stride,
                                                       float* const* to, int64_t to_stride, int64_t count,
                                                       const Steps& step) {
  constexpr int kRows = 8;
  for (int half = 0; half < 2; ++half) {
    for (int64_t row = 0; row < kTileSamples; row += kRows) {
      __m512 low[kRows], high[kRows];
      TANDEM_UNROLL
      for (int r = 0; r < kRows; ++r) {
        low[r] = high[r] = _mm512_setzero_ps();
        if (from == nullptr) continue;
        low[r] = _mm512_loadu_ps(from[2 * half] + (row + r) * from_stride);
        if (!kNarrow) high[r] = _mm512_loadu_ps(from[2 * half + 1] + (row + r) * from_stride);
      }
      for (int64_t i = 0; i < count; ++i) {
        const TileStep s = step(i);
        const uint16_t* a = (half == 0 ? s.a : s.a2) + row * kTileChannels;
        for (int64_t pair = 0; pair < kTileChannels / 2; ++pair) {
          const __m512i b_low = _mm512_loadu_si512(s.b + pair * 32);
          const __m512i b_high = kNarrow ? b_low : _mm512_loadu_si512(s.b + kTileElements + pair * 32);
          TANDEM_UNROLL
          for (int r = 0; r < kRows; ++r) {
            int32_t two;
            __builtin_memcpy(&two, a + r * kTileChannels + 2 * pair, sizeof(two));
            const __m512i all = _mm512_set1_epi32(two);
            low[r] = AddPairs(low[r], all, b_low);
            if (!kNarrow) high[r] = AddPairs(high[r], all, b_high);
          }
        }
      }
      TANDEM_UNROLL
      for (int r = 0; r < kRows; ++r) {
        _mm512_storeu_ps(to[2 * half] + (row + r) * to_stride, low[r]);
        if (!kNarrow) _mm512_storeu_ps(to[2 * half + 1] + (row + r) * to_stride, high[r]);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::cpu

// Each file uses those before it. The table uses all.
// clang-format off
#include "engine/backends/cpu/kernels/tiles.inc"
#include "engine/backends/cpu/kernels/tiles_pooling.inc"
#include "engine/backends/cpu/kernels/tiles_products.inc"
#include "engine/backends/cpu/kernels/tiles_winograd.inc"
#include "engine/backends/cpu/kernels/tiles_table.inc"
// clang-format on
