// The loops over tiles by AMX's tile registers. All functions have internal linkage, as in vector.inc.

#define TANDEM_TILES_NAME kAmxTileKernels
#define TANDEM_TILES_ISA "amx"

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

// The stride of a tile's rows, in bytes.
constexpr int kRow = 64;

// While it lives, the thread's eight tile registers have 16 rows of 64 bytes.
class TileScope {
 public:
  TileScope() {
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int i = 0; i < 8; ++i) {
      config.row_bytes[i] = kRow;
      config.rows[i] = 16;
    }
    // g++ believes that the instruction reads only 8 bytes.
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
  }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <bool kNarrow, typename Steps>
inline __attribute__((always_inline)) void AddProducts(const float* const* from, int64_t from_stride,
                                                       float* const* to, int64_t to_stride, int64_t count,
                                                       const Steps& step) {
  // g++ does not know that _tile_loadd reads memory: the stores before must be done.
  __asm__ volatile("" : : : "memory");
  if (from == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    const int64_t bytes = from_stride * static_cast<int64_t>(sizeof(float));
    _tile_loadd(0, from[0], bytes);
    if (!kNarrow) _tile_loadd(1, from[1], bytes);
    _tile_loadd(2, from[2], bytes);
    if (!kNarrow) _tile_loadd(3, from[3], bytes);
  }
  for (int64_t i = 0; i < count; ++i) {
    const TileStep s = step(i);
    _tile_loadd(6, s.b, kRow);
    _tile_loadd(4, s.a, kRow);
    if (!kNarrow) _tile_loadd(7, s.b + kTileElements, kRow);
    _tile_loadd(5, s.a2, kRow);
    _tile_dpbf16ps(0, 4, 6);
    if (!kNarrow) _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    if (!kNarrow) _tile_dpbf16ps(3, 5, 7);
  }
  const int64_t bytes = to_stride * static_cast<int64_t>(sizeof(float));
  _tile_stored(0, to[0], bytes);
  if (!kNarrow) _tile_stored(1, to[1], bytes);
  _tile_stored(2, to[2], bytes);
  if (!kNarrow) _tile_stored(3, to[3], bytes);
}

}  // namespace
}  // namespace tandem::cpu

// Each file uses those before it. The table uses all.
// clang-format off
#include "engine/backends/cpu/kernels/tiles.inc"
#include "engine/backends/cpu/kernels/tiles_pooling.inc"
#include "engine/backends/cpu/kernels/tiles_products.inc"
#include "engine/backends/cpu/kernels/tiles_table.inc"
// clang-format on
