// Convolutions and matrix products in bfloat16 by AMX's tile registers. All functions have internal linkage,
// as in vector.inc.

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

extern const TileKernels kAmxTileKernels;

namespace {

constexpr int64_t kHalf = kTileElements / 2;
// The stride of a tile's rows, in bytes.
constexpr int kRow = 64;
// Weights of so many tile pairs stay in the first cache while a row of pixels passes.
// So many pixels of dy and x stay in the first cache while a kernel's row passes.
constexpr int64_t kCachedPixels = 7;
constexpr int64_t kCachedPairs = 9;

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

inline __attribute__((always_inline)) void LoadSums(const float* from) {
  _tile_loadd(0, from, kRow);
  _tile_loadd(1, from + kHalf, kRow);
  _tile_loadd(2, from + 2 * kHalf, kRow);
  _tile_loadd(3, from + 3 * kHalf, kRow);
}
inline __attribute__((always_inline)) void ZeroSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
inline __attribute__((always_inline)) void StoreSums(float* to) {
  _tile_stored(0, to, kRow);
  _tile_stored(1, to + kHalf, kRow);
  _tile_stored(2, to + 2 * kHalf, kRow);
  _tile_stored(3, to + 3 * kHalf, kRow);
}
// Adds the products of two tiles at `a` and `a2` with two tiles at `b`.
inline __attribute__((always_inline)) void Multiply(const uint16_t* a, const uint16_t* a2,
                                                    const uint16_t* b) {
  _tile_loadd(6, b, kRow);
  _tile_loadd(4, a, kRow);
  _tile_loadd(7, b + kTileElements, kRow);
  _tile_loadd(5, a2, kRow);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

inline __attribute__((always_inline)) __m512i RoundPair(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Returns word indices that interleave the words of two vectors' first (half = 0) or second halves.
inline __m512i InterleaveIndex(int half) {
  alignas(64) uint16_t index[32];
  for (int i = 0; i < 16; ++i) {
    index[2 * i] = static_cast<uint16_t>(16 * half + i);
    index[2 * i + 1] = static_cast<uint16_t>(32 + 16 * half + i);
  }
  return _mm512_load_si512(index);
}

void PackWeights(const TileWeights& w, const float* from, uint16_t* to, int64_t begin, int64_t end) {
  const int64_t in_blocks = TileBlocks(w.inputs);
  alignas(64) int32_t offsets[16];
  for (int i = 0; i < 16; ++i) offsets[i] = static_cast<int32_t>(i * w.output_stride);
  const __m512i offset = _mm512_load_si512(offsets);
  alignas(64) uint16_t words[32];
  for (int i = 0; i < 16; ++i) {
    words[2 * i] = static_cast<uint16_t>(i);
    words[2 * i + 1] = static_cast<uint16_t>(16 + i);
  }
  const __m512i interleave = _mm512_load_si512(words);
  for (int64_t block = begin; block < end; ++block) {
    for (int64_t in = 0; in < in_blocks; ++in) {
      for (int64_t tap = 0; tap < w.taps; ++tap) {
        uint16_t* tile = to + ((block * in_blocks + in) * w.taps + tap) * 2 * kTileElements;
        for (int64_t half = 0; half < 2; ++half) {
          const int64_t output = block * kTileChannels + 16 * half;
          const int64_t count = w.outputs - output;
          const auto mask = static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
          const float* first = from + output * w.output_stride + tap;
          for (int64_t pair = 0; pair < 16; ++pair) {
            __m512 values[2];
            for (int64_t k = 0; k < 2; ++k) {
              const int64_t input = in * kTileChannels + 2 * pair + k;
              values[k] = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), input < w.inputs ? mask : __mmask16{},
                                                   offset, first + input * w.input_stride, 4);
            }
            _mm512_storeu_si512(tile + half * kTileElements + pair * 32,
                                _mm512_permutexvar_epi16(interleave, RoundPair(values[0], values[1])));
          }
        }
      }
    }
  }
}

// Writes a tile of bfloat16 from two tiles of sums.
inline __attribute__((always_inline)) void StoreTile(const float* sums, __m512 low_bias, __m512 high_bias,
                                                     uint16_t* y) {
  TANDEM_UNROLL
  for (int64_t n = 0; n < kTileSamples; ++n) {
    const __m512 low = _mm512_add_ps(_mm512_loadu_ps(sums + n * 16), low_bias);
    const __m512 high = _mm512_add_ps(_mm512_loadu_ps(sums + kHalf + n * 16), high_bias);
    _mm512_storeu_si512(y + n * kTileChannels, RoundPair(low, high));
  }
}

void Convolve(const TileConv& s, const uint16_t* x, const uint16_t* weight, const float* bias,
              int64_t bias_channels, uint16_t* y, float* scratch, int64_t begin, int64_t end) {
  const TileScope scope;
  const int64_t segments = s.in_blocks * s.kernel_height;
  const int64_t segments_at_once = kCachedPairs > s.kernel_width ? kCachedPairs / s.kernel_width : 1;
  const int64_t image = s.in_blocks * s.in_height * s.in_width * kTileElements;
  const int64_t filter = segments * s.kernel_width * 2 * kTileElements;
  // Small weights are read again for each row, large weights once for each pair of images.
  const bool rows_first = s.out_blocks * filter > int64_t{256} << 10;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t pair = item / (s.out_height * s.out_blocks);
    const int64_t rest = item % (s.out_height * s.out_blocks);
    const int64_t block = rows_first ? rest / s.out_height : rest % s.out_blocks;
    const int64_t row = rows_first ? rest % s.out_height : rest / s.out_blocks;
    const bool two = 2 * pair + 1 < s.blocks;
    const uint16_t* x0 = x + 2 * pair * image;
    const uint16_t* x1 = two ? x0 + image : x0;
    const uint16_t* w = weight + block * filter;
    alignas(64) float biases[kTileChannels] = {};
    if (bias != nullptr) {
      for (int64_t c = 0; c < kTileChannels && block * kTileChannels + c < bias_channels; ++c) {
        biases[c] = bias[block * kTileChannels + c];
      }
    }
    const __m512 low_bias = _mm512_load_ps(biases);
    const __m512 high_bias = _mm512_load_ps(biases + 16);
    const int64_t out_image = s.out_blocks * s.out_height * s.out_width * kTileElements;
    uint16_t* y0 = y + 2 * pair * out_image + (block * s.out_height + row) * s.out_width * kTileElements;
    for (int64_t first = 0; first < segments; first += segments_at_once) {
      const int64_t last = first + segments_at_once < segments ? first + segments_at_once : segments;
      for (int64_t column = 0; column < s.out_width; ++column) {
        float* sums = scratch + column * kTileSums;
        if (first == 0) {
          ZeroSums();
        } else {
          LoadSums(sums);
        }
        const int32_t* columns = s.columns + column * s.kernel_width;
        for (int64_t segment = first; segment < last; ++segment) {
          const int64_t in_row = s.rows[row * s.kernel_height + segment % s.kernel_height];
          if (in_row < 0) continue;
          const int64_t at = (segment / s.kernel_height * s.in_height + in_row) * s.in_width;
          const uint16_t* pairs = w + segment * s.kernel_width * 2 * kTileElements;
          for (int64_t k = 0; k < s.kernel_width; ++k) {
            if (columns[k] < 0) continue;
            const int64_t offset = (at + columns[k]) * kTileElements;
            Multiply(x0 + offset, x1 + offset, pairs + k * 2 * kTileElements);
          }
        }
        StoreSums(sums);
        if (last < segments) continue;
        StoreTile(sums, low_bias, high_bias, y0 + column * kTileElements);
        if (two) {
          StoreTile(sums + 2 * kHalf, low_bias, high_bias, y0 + out_image + column * kTileElements);
        }
      }
    }
  }
}

// Transposes 16 rows of 16 numbers of 32 bits.
inline __attribute__((always_inline)) void Transpose(__m512i* r) {
  __m512i t[16];
  TANDEM_UNROLL
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  TANDEM_UNROLL
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  // r[4 i + j] has column 4 q + j of rows 4 i to 4 i + 3 in quarter q.
  TANDEM_UNROLL
  for (int j = 0; j < 4; ++j) {
    t[j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88);
    t[4 + j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    t[8 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
  }
  TANDEM_UNROLL
  for (int j = 0; j < 4; ++j) {
    r[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
    r[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xdd);
    r[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88);
    r[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xdd);
  }
}

void PackPixels(const uint16_t* first, const uint16_t* second, bool transpose, uint16_t* to, int64_t begin,
                int64_t end) {
  const __m512i index[2] = {InterleaveIndex(0), InterleaveIndex(1)};
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    for (int half = 0; half < 2; ++half) {
      // Row i has samples 2 i and 2 i + 1 of 16 channels.
      __m512i rows[16];
      TANDEM_UNROLL
      for (int i = 0; i < 8; ++i) {
        const uint16_t* from = first + pixel * kTileElements + 2 * i * kTileChannels;
        rows[i] = _mm512_permutex2var_epi16(_mm512_loadu_si512(from), index[half],
                                            _mm512_loadu_si512(from + kTileChannels));
        if (second == nullptr) {
          rows[8 + i] = _mm512_setzero_si512();
          continue;
        }
        from = second + pixel * kTileElements + 2 * i * kTileChannels;
        rows[8 + i] = _mm512_permutex2var_epi16(_mm512_loadu_si512(from), index[half],
                                                _mm512_loadu_si512(from + kTileChannels));
      }
      if (transpose) Transpose(rows);
      uint16_t* tile = to + (2 * pixel + half) * kTileElements;
      TANDEM_UNROLL
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(tile + 32 * i, rows[i]);
    }
  }
}

void GradWeight(const TileConv& s, const TileGradPart& part, const uint16_t* x, const uint16_t* dy,
                float* sums, int64_t begin, int64_t end) {
  const TileScope scope;
  const int64_t dy_block = (part.last_row - part.first_row) * s.out_width * 2 * kTileElements;
  const int64_t x_block = part.x_rows * s.in_width * 2 * kTileElements;
  for (int64_t item = begin; item < end; ++item) {
    float* to = sums + item * s.taps() * kTileSums;
    if (part.first) {
      for (int64_t i = 0; i < s.taps() * kTileSums; ++i) to[i] = 0;
    }
    // Adds the products of the columns [first, last) of a row of dy and a row of x.
    const auto add_columns = [&](const uint16_t* grads, const uint16_t* from, int64_t first, int64_t last,
                                 int64_t k, float* tap) __attribute__((always_inline)) {
      LoadSums(tap);
      for (int64_t column = first; column < last; ++column) {
        const int64_t x_column = s.columns[column * s.kernel_width + k];
        if (x_column < 0) continue;
        const uint16_t* a = grads + column * 2 * kTileElements;
        Multiply(a, a + kTileElements, from + x_column * 2 * kTileElements);
      }
      StoreSums(tap);
    };
    for (int64_t pair = 0; pair < part.pairs; ++pair) {
      const uint16_t* pair_dy = dy + (pair * s.out_blocks + item / s.in_blocks) * dy_block;
      const uint16_t* pair_x = x + (pair * s.in_blocks + item % s.in_blocks) * x_block;
      for (int64_t kernel_row = 0; kernel_row < s.kernel_height; ++kernel_row) {
        for (int64_t row = part.first_row; row < part.last_row; ++row) {
          const int64_t x_row = s.rows[row * s.kernel_height + kernel_row];
          if (x_row < 0) continue;
          const uint16_t* from = pair_x + (x_row - part.first_x_row) * s.in_width * 2 * kTileElements;
          const uint16_t* grads = pair_dy + (row - part.first_row) * s.out_width * 2 * kTileElements;
          for (int64_t first = 0; first < s.out_width; first += kCachedPixels) {
            const int64_t last = first + kCachedPixels < s.out_width ? first + kCachedPixels : s.out_width;
            for (int64_t k = 0; k < s.kernel_width; ++k) {
              add_columns(grads, from, first, last, k, to + (kernel_row * s.kernel_width + k) * kTileSums);
            }
          }
        }
      }
    }
  }
}

void StoreGradWeight(const TileConv& s, const TileWeights& w, const float* sums, float* dweight,
                     int64_t begin, int64_t end) {
  for (int64_t output = begin; output < end; ++output) {
    const int64_t block = output / kTileChannels;
    const int64_t half = output / 16 % 2;
    float* to = dweight + output * w.inputs * w.taps;
    for (int64_t input = 0; input < w.inputs; ++input) {
      const float* from = sums + (block * s.in_blocks + input / kTileChannels) * w.taps * kTileSums +
                          half * 2 * kHalf + input / 16 % 2 * kHalf + output % 16 * 16 + input % 16;
      for (int64_t tap = 0; tap < w.taps; ++tap) to[input * w.taps + tap] = from[tap * kTileSums];
    }
  }
}

inline __attribute__((always_inline)) __m512 Widen(const uint16_t* from) {
  const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from)));
  return reinterpret_cast<__m512>(_mm512_slli_epi32(words, 16));
}

void GradBias(const TileConv& s, const uint16_t* dy, int64_t channels, float* dbias, int64_t begin,
              int64_t end) {
  const int64_t rows = s.out_height * s.out_width * kTileSamples;
  for (int64_t block = begin; block < end; ++block) {
    double totals[kTileChannels] = {};
    for (int64_t n = 0; n < s.blocks; ++n) {
      const uint16_t* from = dy + (n * s.out_blocks + block) * rows * kTileChannels;
      __m512 low = _mm512_setzero_ps();
      __m512 high = _mm512_setzero_ps();
      for (int64_t row = 0; row < rows; ++row) {
        low = _mm512_add_ps(low, Widen(from + row * kTileChannels));
        high = _mm512_add_ps(high, Widen(from + row * kTileChannels + 16));
      }
      alignas(64) float some[kTileChannels];
      _mm512_store_ps(some, low);
      _mm512_store_ps(some + 16, high);
      for (int64_t c = 0; c < kTileChannels; ++c) totals[c] += some[c];
    }
    for (int64_t c = 0; c < kTileChannels && block * kTileChannels + c < channels; ++c) {
      dbias[block * kTileChannels + c] = static_cast<float>(totals[c]);
    }
  }
}

// The places of a pixel's 32 unfolded numbers in an image, in elements. Places outside the image are not in
// the mask.
struct UnfoldedPlaces {
  alignas(64) int32_t offsets[kTileChannels];
  uint32_t mask;
};

inline void FindPlaces(const TileConv& s, const TileUnfold& images, int64_t first, const int32_t* rows,
                       const int32_t* columns, UnfoldedPlaces* places) {
  const int64_t numbers = images.channels * s.taps();
  places->mask = 0;
  for (int64_t k = 0; k < kTileChannels; ++k) {
    places->offsets[k] = 0;
    if (first + k >= numbers) continue;
    const int64_t tap = (first + k) % s.taps();
    const int32_t x_row = rows[tap / s.kernel_width];
    const int32_t x_column = columns[tap % s.kernel_width];
    if (x_row < 0 || x_column < 0) continue;
    places->mask |= uint32_t{1} << k;
    places->offsets[k] =
        static_cast<int32_t>(((first + k) / s.taps() * images.height + x_row) * images.width + x_column);
  }
}

void Unfold(const TileConv& s, const TileUnfold& images, const float* x, uint16_t* to, int64_t begin,
            int64_t end) {
  const int64_t image = images.channels * images.height * images.width;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t block = item / s.out_height;
    const int64_t row = item % s.out_height;
    for (int64_t column = 0; column < s.out_width; ++column) {
      for (int64_t b = 0; b < s.in_blocks; ++b) {
        UnfoldedPlaces places;
        FindPlaces(s, images, b * kTileChannels, s.rows + row * s.kernel_height,
                   s.columns + column * s.kernel_width, &places);
        const __m512i low_at = _mm512_load_si512(places.offsets);
        const __m512i high_at = _mm512_load_si512(places.offsets + 16);
        const auto low_mask = static_cast<__mmask16>(places.mask);
        const auto high_mask = static_cast<__mmask16>(places.mask >> 16);
        uint16_t* tile =
            to + (((block * s.in_blocks + b) * s.out_height + row) * s.out_width + column) * kTileElements;
        const __m512 zero = _mm512_setzero_ps();
        for (int64_t n = 0; n < kTileSamples; ++n) {
          const float* from = x + (block * kTileSamples + n) * image;
          const __m512 low = _mm512_mask_i32gather_ps(zero, low_mask, low_at, from, 4);
          const __m512 high = _mm512_mask_i32gather_ps(zero, high_mask, high_at, from, 4);
          _mm512_storeu_si512(tile + n * kTileChannels, RoundPair(low, high));
        }
      }
    }
  }
}

void ToTiles(int64_t channels, int64_t pixels, const float* plain, uint16_t* tiles, int64_t begin,
             int64_t end) {
  const int64_t blocks = TileBlocks(channels);
  for (int64_t item = begin; item < end; ++item) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (int64_t n = 0; n < kTileSamples; ++n) {
        alignas(64) float values[kTileChannels] = {};
        for (int64_t c = 0; c < kTileChannels; ++c) {
          const int64_t channel = item % blocks * kTileChannels + c;
          if (channel >= channels) break;
          values[c] = plain[((item / blocks * kTileSamples + n) * channels + channel) * pixels + pixel];
        }
        _mm512_storeu_si512(tiles + (item * pixels + pixel) * kTileElements + n * kTileChannels,
                            RoundPair(_mm512_load_ps(values), _mm512_load_ps(values + 16)));
      }
    }
  }
}

void FromTiles(int64_t channels, int64_t pixels, const uint16_t* tiles, float* plain, int64_t begin,
               int64_t end) {
  const int64_t blocks = TileBlocks(channels);
  for (int64_t item = begin; item < end; ++item) {
    for (int64_t n = 0; n < kTileSamples; ++n) {
      for (int64_t c = 0; c < kTileChannels; ++c) {
        const int64_t channel = item % blocks * kTileChannels + c;
        if (channel >= channels) break;
        float* to = plain + ((item / blocks * kTileSamples + n) * channels + channel) * pixels;
        const uint16_t* from = tiles + item * pixels * kTileElements + n * kTileChannels + c;
        for (int64_t pixel = 0; pixel < pixels; ++pixel) {
          const uint32_t bits = static_cast<uint32_t>(from[pixel * kTileElements]) << 16;
          __builtin_memcpy(to + pixel, &bits, sizeof(bits));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::cpu

#include "engine/backends/cpu/kernels/tiles_pooling.inc"
#include "engine/backends/cpu/kernels/tiles_products.inc"

namespace tandem::cpu {

const TileKernels kAmxTileKernels = {
    .pack_weights = PackWeights,
    .convolve = Convolve,
    .pack_pixels = PackPixels,
    .grad_weight = GradWeight,
    .store_grad_weight = StoreGradWeight,
    .grad_bias = GradBias,
    .unfold = Unfold,
    .to_tiles = ToTiles,
    .from_tiles = FromTiles,
    .pack_factor = PackFactor,
    .multiply = MultiplyBlocks,
    .column_sums = ColumnSums,
    .max_pool = TileMaxPool,
    .max_pool_grad = TileMaxPoolGrad,
    .average_pool = TileAveragePool,
    .average_pool_grad = TileAveragePoolGrad,
};

}  // namespace tandem::cpu
