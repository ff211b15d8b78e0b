#ifndef TANDEM_ENGINE_BACKENDS_CPU_KERNELS_TILES_H_
#define TANDEM_ENGINE_BACKENDS_CPU_KERNELS_TILES_H_

#include <cstdint>

#include "engine/backends/cpu/kernels/kernels.h"

namespace tandem::cpu {

// The "tiled" layout of bfloat16 images [N, C, H, W]: [N / 16][ceil(C / 32)][H][W][16][32], with sixteen
// samples and 32 channels of a pixel side by side. These 1,024 bytes fill a tile register of AMX, so padding
// and strides of a convolution only select tiles. N is a multiple of 16. Channels past C hold zero.
inline constexpr int64_t kTileSamples = 16;
inline constexpr int64_t kTileChannels = 32;
inline constexpr int64_t kTileElements = kTileSamples * kTileChannels;
// The float32 sums of two samples' blocks and two halves of a channel block: 4 tile registers.
inline constexpr int64_t kTileSums = 2 * kTileElements;

constexpr int64_t TileBlocks(int64_t channels) { return (channels + kTileChannels - 1) / kTileChannels; }

// A convolution over tiled images, or its data gradient. Maps of pixels express stride, dilation and padding.
struct TileConv {
  int64_t blocks = 0;      // N / 16
  int64_t in_blocks = 0;   // Blocks of 32 channels.
  int64_t out_blocks = 0;  // Blocks of 32 channels.
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t kernel_height = 0;
  int64_t kernel_width = 0;
  const int32_t* rows = nullptr;     // [out_height][kernel_height]: the input's row, or -1 outside.
  const int32_t* columns = nullptr;  // [out_width][kernel_width]: the input's column, or -1 outside.

  int64_t taps() const { return kernel_height * kernel_width; }
  int64_t image_pairs() const { return (blocks + 1) / 2; }
  int64_t items() const { return image_pairs() * out_height * out_blocks; }
  // The bfloat16 numbers of packed weights.
  int64_t weight_elements() const { return out_blocks * in_blocks * taps() * 2 * kTileElements; }
  // The floats of a thread's scratch in `convolve`.
  int64_t scratch_floats() const { return out_width * kTileSums; }
  // The floats of the weight gradient's sums.
  int64_t sum_floats() const { return out_blocks * in_blocks * taps() * kTileSums; }
};

// A place of 2x2 output pixels.
struct TilePatch {
  int64_t block = 0;   // Of sixteen samples.
  int64_t row = 0;     // The first output row.
  int64_t column = 0;  // The first output column.
};

// A 3x3 convolution of stride 1 by Winograd's transforms, or its data gradient, whose input is dy. Patches
// are counted over all blocks of samples.
struct TileWinograd {
  static constexpr int64_t kPoints = 16;

  int64_t blocks = 0;      // N / 16
  int64_t in_blocks = 0;   // Blocks of 32 channels.
  int64_t out_blocks = 0;  // Blocks of 32 channels.
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t top = 0;   // The input row of output row 0 and tap row 0. May be negative.
  int64_t left = 0;  // The same of columns.
  // The patches that `convolve_winograd` transforms together, an even number. It changes no result.
  int64_t group = 2;

  // All are inline, as ConvSizes::out_height.
  __attribute__((always_inline)) int64_t patch_columns() const { return (out_width + 1) / 2; }
  __attribute__((always_inline)) int64_t image_patches() const {
    return (out_height + 1) / 2 * patch_columns();
  }
  __attribute__((always_inline)) int64_t patches() const { return blocks * image_patches(); }
  __attribute__((always_inline)) TilePatch PatchAt(int64_t patch) const {
    const int64_t place = patch % image_patches();
    return {patch / image_patches(), place / patch_columns() * 2, place % patch_columns() * 2};
  }
  __attribute__((always_inline)) int64_t items() const { return (patches() + group - 1) / group; }
  // The bfloat16 numbers of packed weights.
  __attribute__((always_inline)) int64_t weight_elements() const {
    return out_blocks * in_blocks * kPoints * 2 * kTileElements;
  }
  // The floats of a thread's scratch in `convolve_winograd`.
  __attribute__((always_inline)) int64_t scratch_floats() const {
    return group * kPoints * kTileElements + group * in_blocks * kPoints * kTileElements / 2;
  }
};

// Float32 weights, by strides in elements. `outputs` and `inputs` are channels.
struct TileWeights {
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t taps = 0;
  int64_t output_stride = 0;
  int64_t input_stride = 0;
};

// Plain float32 images [samples][channels][height][width], from which `unfold` makes a column of numbers for
// each output pixel: [channels][kernel_height][kernel_width].
struct TileUnfold {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// A part of the weight gradient's sum: pairs of blocks of samples, and output rows [first_row, last_row). `x`
// has the input rows from first_x_row on.
struct TileGradPart {
  int64_t pairs = 1;
  int64_t first_row = 0;
  int64_t last_row = 0;
  int64_t first_x_row = 0;
  int64_t x_rows = 0;
  bool first = false;  // The sums start at zero.
};

// A factor of a matrix product: `lines` rows of A, or columns of B, with `depth` numbers each. Sixteen
// neighbours are side by side: of a line's numbers if `depth_vectors`, else of the lines with one depth.
struct TileFactor {
  int64_t lines = 0;
  int64_t depth = 0;
  bool depth_vectors = true;
  int64_t stride = 0;    // Elements from a vector to the next line, or to the next depth.
  int64_t group = 16;    // Elements from a vector to the next sixteen neighbours.
  bool columns = false;  // The factor is B.
  bool narrow = false;   // The numbers are bfloat16, else float32.

  int64_t blocks() const { return (lines + kTileChannels - 1) / kTileChannels; }
};

// The numbers of a packed block of 32 lines, for each 32 of depth.
inline constexpr int64_t kPackedStep = 2 * kTileElements;

// A matrix product C = A B over packed factors. C is float32 [rows, columns], in vectors of 16 columns.
struct TileProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t steps = 0;                   // Of 32 in depth.
  int64_t stride = 0;                  // Elements from a row of C to the next.
  int64_t group = 16;                  // Elements from sixteen columns of C to the next.
  bool whole_groups = false;           // C has memory for all columns of its last group.
  bool adds = false;                   // The product is added to C. Otherwise C starts as the bias.
  bool relu = false;                   // C becomes max(C, 0).
  const float* row_bias = nullptr;     // [rows], or null.
  const float* column_bias = nullptr;  // [columns], or null.
};

// A product of 32 rows and 32 columns over 32 in depth: two tiles of A, and at `b` two tiles of B side by
// side.
struct TileStep {
  const uint16_t* a;
  const uint16_t* a2;
  const uint16_t* b;
};

// Loops over tiles. As in Kernels, each takes a half-open range of work items. An output is computed within a
// single item, in a fixed order.
struct TileKernels {
  const char* isa;  // "amx" or "avx512_bf16".
  // Packs weights in the order in which `convolve` reads them. Items: blocks of 32 outputs.
  void (*pack_weights)(const TileWeights& weights, const float* from, uint16_t* to, int64_t begin,
                       int64_t end);
  // y = convolution(x, weight) + bias. Sums are float32. `bias` [bias_channels] may be null. `scratch` is a
  // thread's own, with conv.scratch_floats(). Items: conv.items().
  void (*convolve)(const TileConv& conv, const uint16_t* x, const uint16_t* weight, const float* bias,
                   int64_t bias_channels, uint16_t* y, float* scratch, int64_t begin, int64_t end);
  // Packs pixels of two blocks of samples for grad_weight. `second` may be null for zeros. `to` has 2 tiles a
  // pixel. If `transpose`, packs dy, else x. Items: pixels.
  void (*pack_pixels)(const uint16_t* first, const uint16_t* second, bool transpose, uint16_t* to,
                      int64_t begin, int64_t end);
  // Adds a part of dweight to `sums`. `dy` is [pairs][out_blocks][rows][out_width] packed pixels, `x` is
  // [pairs][in_blocks][x_rows][in_width] packed pixels. Items: out_blocks * in_blocks.
  void (*grad_weight)(const TileConv& conv, const TileGradPart& part, const uint16_t* x, const uint16_t* dy,
                      float* sums, int64_t begin, int64_t end);
  // Writes dweight [outputs][inputs][taps] from the sums. Items: outputs.
  void (*store_grad_weight)(const TileConv& conv, const TileWeights& weights, const float* sums,
                            float* dweight, int64_t begin, int64_t end);
  // dbias[c] = the sum of dy over samples and pixels. Items: conv.out_blocks.
  void (*grad_bias)(const TileConv& conv, const uint16_t* dy, int64_t channels, float* dbias, int64_t begin,
                    int64_t end);
  // Unfolds plain images into tiles of conv.in_blocks channel blocks, with the pixels of y. Items: blocks *
  // out_height.
  void (*unfold)(const TileConv& conv, const TileUnfold& images, const float* x, uint16_t* to, int64_t begin,
                 int64_t end);
  // Converts plain float32 images [blocks * 16][channels][pixels] to tiles, and back. Items: blocks *
  // TileBlocks(channels).
  void (*to_tiles)(int64_t channels, int64_t pixels, const float* plain, uint16_t* tiles, int64_t begin,
                   int64_t end);
  void (*from_tiles)(int64_t channels, int64_t pixels, const uint16_t* tiles, float* plain, int64_t begin,
                     int64_t end);
  // Packs the depths [first_depth, first_depth + 32 * steps) of a factor in the order of `multiply`. Rounds
  // float32 numbers to bfloat16. Depths past the factor's are zero. `from` has the type that
  // `factor.narrow` says. `to` has [blocks][steps][kPackedStep], from block `begin` on. Items: blocks of 32
  // lines.
  void (*pack_factor)(const TileFactor& factor, const void* from, int64_t first_depth, int64_t steps,
                      uint16_t* to, int64_t begin, int64_t end);
  // Computes the blocks of 32 rows [first_row, last_row) and of 32 columns [first_column, last_column) of C.
  // `a` and `b` are the packed factors from these blocks on.
  void (*multiply)(const TileProduct& product, const uint16_t* a, const uint16_t* b, float* c,
                   int64_t first_row, int64_t last_row, int64_t first_column, int64_t last_column);
  // sums[column] = the sum of `from` [rows, columns] over the rows. Items: groups of 64 columns.
  void (*column_sums)(int64_t rows, int64_t columns, const float* from, float* sums, int64_t begin,
                      int64_t end);
  // Pooling as in Kernels, without its lanes. Gradients are sums in float32. Items: outer * out_height, and
  // outer * in_height for gradients.
  void (*max_pool)(const PoolSizes& sizes, const uint16_t* x, uint16_t* y, uint8_t* index, int64_t begin,
                   int64_t end);
  void (*max_pool_grad)(const PoolSizes& sizes, const uint8_t* index, const uint16_t* dy, uint16_t* dx,
                        int64_t begin, int64_t end);
  void (*average_pool)(const PoolSizes& sizes, const uint16_t* x, uint16_t* y, int64_t begin, int64_t end);
  void (*average_pool_grad)(const PoolSizes& sizes, const uint16_t* dy, uint16_t* dx, int64_t begin,
                            int64_t end);
  // The functions of a TileWinograd. Null where products are so fast that its transforms do not gain.

  // Packs weights in the order of `convolve_winograd`. If `flip`, the
  // taps are in reverse order, as a data gradient needs them. Items: blocks of 32 outputs.
  void (*pack_winograd_weights)(const TileWeights& weights, bool flip, const float* from, uint16_t* to,
                                int64_t begin, int64_t end) = nullptr;
  // As `convolve`. Items: conv.items().
  void (*convolve_winograd)(const TileWinograd& conv, const uint16_t* x, const uint16_t* weight,
                            const float* bias, int64_t bias_channels, uint16_t* y, float* scratch,
                            int64_t begin, int64_t end) = nullptr;
  // Packs the points of the patches [first, last) of x, or of dy if `is_grad`, in pairs: [channel
  // blocks][kPoints][pairs][kPackedStep]. Items: channel blocks * pairs.
  void (*pack_patches)(const TileWinograd& conv, bool is_grad, const uint16_t* images, int64_t first,
                       int64_t last, uint16_t* to, int64_t begin, int64_t end) = nullptr;
  // Adds the products of packed patches to `sums`, which start at zero if `zero`. Items: out_blocks *
  // in_blocks.
  void (*add_winograd_grad)(const TileWinograd& conv, int64_t pairs, bool zero, const uint16_t* x,
                            const uint16_t* dy, float* sums, int64_t begin, int64_t end) = nullptr;
  // Writes dweight [outputs][inputs][9] from the sums. Items: outputs.
  void (*store_winograd_grad)(const TileWinograd& conv, const TileWeights& weights, const float* sums,
                              float* dweight, int64_t begin, int64_t end) = nullptr;
};

enum class TileSupport : uint8_t {
  kUsable,
  kMissing,  // The processor has no AMX for bfloat16, or TANDEM_CPU_ISA is set.
  kRefused,  // Linux does not give this process the tile registers.
};

// Asks Linux for AMX's tile registers in the first call. Thread-safe.
TileSupport FindTileSupport();
// Returns the loops over tiles by AMX, else by AVX-512, or null if the processor has no products of bfloat16
// in AVX-512, or if TANDEM_CPU_ISA excludes AVX-512. Thread-safe.
const TileKernels* BestTileKernels();

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_KERNELS_TILES_H_
