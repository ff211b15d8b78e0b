// Convolutions in bfloat16 over tiled images (kernels/tiles.h).

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/cpu/convolution.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {
namespace {

// The packed pixels of a part of the weight gradient's sum should stay in a core's second cache.
constexpr int64_t kPartBytes = 1200 << 10;
// Sums beyond this size leave the cache between two parts. Parts then have as many pairs as fit into
// kWidePartBytes.
constexpr int64_t kCachedSumBytes = 1 << 20;
constexpr int64_t kWidePartBytes = 6 << 20;
// The cost to transform a number of the input or output, in products of a direct convolution. Measured on a
// Zen 4, with images of 28x28, 14x14 and 7x7 and 16 to 512 channels: the rule's gain is within 8 % of the
// forward pass's and the data gradient's. Weight gradients gain up to 20 % less.
constexpr double kTransformCost = 11;
// Each pixel of two blocks of samples has two tiles for each block of channels.
constexpr int64_t kPackedPixel = 2 * kTileElements;
// An image with so few channels is unfolded: each tap of each channel becomes a channel.
constexpr int64_t kUnfoldedChannels = 4;
constexpr int64_t kMostUnfolded = 160;

// A convolution with its maps of pixels.
struct Tiling {
  TileConv conv;
  std::shared_ptr<std::vector<int32_t>> maps = std::make_shared<std::vector<int32_t>>();
};

// Returns for each output coordinate and tap the input's coordinate, or -1 outside.
void AddMap(const Conv2dGeometry& g, bool height, int64_t output, int64_t input, int64_t taps, bool gradient,
            std::vector<int32_t>* map) {
  const int64_t stride = height ? g.stride.h : g.stride.w;
  const int64_t dilation = height ? g.dilation.h : g.dilation.w;
  const int64_t padding = height ? g.padding.h : g.padding.w;
  for (int64_t o = 0; o < output; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t at = o * stride - padding + tap * dilation;
      if (gradient) {
        at = o + padding - tap * dilation;
        at = at % stride == 0 ? at / stride : -1;
      }
      map->push_back(at >= 0 && at < input ? static_cast<int32_t>(at) : -1);
    }
  }
}

// Returns the tiling of the forward pass, or of the data gradient, whose input is dy.
Tiling TilingOf(const ConvProblem& p, bool gradient) {
  const Shape& in = gradient ? p.y : p.x;
  const Shape& out = gradient ? p.x : p.y;
  Tiling tiling;
  tiling.conv = {.blocks = p.x[0] / kTileSamples,
                 .in_blocks = TileBlocks(in[1]),
                 .out_blocks = TileBlocks(out[1]),
                 .in_height = in[2],
                 .in_width = in[3],
                 .out_height = out[2],
                 .out_width = out[3],
                 .kernel_height = p.weight[2],
                 .kernel_width = p.weight[3]};
  std::vector<int32_t>& maps = *tiling.maps;
  AddMap(p.geometry, true, out[2], in[2], p.weight[2], gradient, &maps);
  const size_t rows = maps.size();
  AddMap(p.geometry, false, out[3], in[3], p.weight[3], gradient, &maps);
  tiling.conv.rows = maps.data();
  tiling.conv.columns = maps.data() + rows;
  return tiling;
}

bool Unfolds(const ConvProblem& p) {
  return p.x[1] <= kUnfoldedChannels && p.x[1] * p.weight[2] * p.weight[3] <= kMostUnfolded;
}

// Returns the convolution by Winograd's transforms, or its data gradient.
TileWinograd WinogradOf(const Lowering& lowering, const ConvProblem& p, bool gradient) {
  const Shape& in = gradient ? p.y : p.x;
  const Shape& out = gradient ? p.x : p.y;
  const auto& padding = p.geometry.padding;
  TileWinograd conv = {.blocks = p.x[0] / kTileSamples,
                       .in_blocks = TileBlocks(in[1]),
                       .out_blocks = TileBlocks(out[1]),
                       .in_height = in[2],
                       .in_width = in[3],
                       .out_height = out[2],
                       .out_width = out[3],
                       .top = gradient ? padding.h - 2 : -padding.h,
                       .left = gradient ? padding.w - 2 : -padding.w};
  // The points of a group stay in a core's second cache, and each thread gets some groups.
  conv.group = 2 * std::clamp<int64_t>(16 / conv.in_blocks, 1, 4);
  while (conv.group > 2 && conv.items() < 2 * lowering.team().threads()) conv.group -= 2;
  return conv;
}

// Returns whether Winograd's transforms compute the convolution, or its data gradient, because they save
// enough products.
bool TakesTiledWinograd(const Lowering& lowering, const ConvProblem& p, bool gradient) {
  const Conv2dGeometry& g = p.geometry;
  if (lowering.algorithms() >= Algorithms::kWithoutWinograd) return false;
  if (BestTileKernels()->convolve_winograd == nullptr || Unfolds(p)) return false;
  if (p.weight[2] != 3 || p.weight[3] != 3 || g.stride.h != 1 || g.stride.w != 1) return false;
  if (g.dilation.h != 1 || g.dilation.w != 1) return false;
  const Tiling tiling = TilingOf(p, gradient);
  const TileConv& direct = tiling.conv;
  const auto inside = [](const int32_t* map, int64_t size) {
    return std::count_if(map, map + size, [](int32_t at) { return at >= 0; });
  };
  const int64_t taps =
      inside(direct.rows, 3 * direct.out_height) * inside(direct.columns, 3 * direct.out_width);
  // Each transformed number takes part in as many products as the other side has channels.
  const double cost = 1 + kTransformCost / static_cast<double>(direct.in_blocks * kTileChannels) +
                      kTransformCost / static_cast<double>(direct.out_blocks * kTileChannels);
  // A direct convolution computes two blocks of samples at a time.
  return WinogradOf(lowering, p, gradient).patches() * TileWinograd::kPoints * cost <=
         taps * 2 * direct.image_pairs();
}

TileWeights WeightsOf(const ConvProblem& p) {
  const int64_t taps = p.weight[2] * p.weight[3];
  return {.outputs = p.y[1],
          .inputs = p.x[1],
          .taps = taps,
          .output_stride = p.x[1] * taps,
          .input_stride = taps};
}

// Returns the weights with outputs and inputs exchanged.
TileWeights Exchanged(const TileWeights& w) {
  return {.outputs = w.inputs,
          .inputs = w.outputs,
          .taps = w.taps,
          .output_stride = w.input_stride,
          .input_stride = w.output_stride};
}

// Returns the pointwise convolution of the unfolded image, whose pixels are those of y.
ConvProblem Unfolded(const ConvProblem& p) {
  const int64_t numbers = p.x[1] * p.weight[2] * p.weight[3];
  return {Shape({p.x[0], numbers, p.y[2], p.y[3]}), Shape({p.y[1], numbers, 1, 1}), p.y, Conv2dGeometry()};
}

absl::StatusOr<Region> UnfoldInput(Lowering& lowering, ValueId x, const ConvProblem& p) {
  TANDEM_ASSIGN_OR_RETURN(const Region plain, lowering.GetPlain(x));
  Tiling tiling = TilingOf(p, false);
  tiling.conv.in_blocks = TileBlocks(p.x[1] * tiling.conv.taps());
  const TileUnfold images = {.channels = p.x[1], .height = p.x[2], .width = p.x[3]};
  const Region unfolded = lowering.Scratch(Layout::Tiled(Unfolded(p).x).bytes());
  lowering.Emit({.name = "unfold",
                 .reads = {plain},
                 .writes = {unfolded},
                 .run = [=, tiles = BestTileKernels()](const RunContext& run) {
                   const TileConv& conv = tiling.conv;
                   run.team->For(conv.blocks * conv.out_height, [&](int64_t begin, int64_t end) {
                     tiles->unfold(conv, images, run.At<const float>(plain), run.At<uint16_t>(unfolded),
                                   begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return unfolded;
}

// The regions of a convolution. x and y are tiles.
struct Convolution {
  Region x, weight, bias, y;
  bool has_bias = false;
};

// Adds the step that packs the weights and computes `conv`, of type TileConv or TileWinograd.
// pack(weights, packed, begin, end) packs blocks of outputs. convolve(x, packed, bias, y, scratch, begin,
// end) computes items of `conv`.
template <typename Conv, typename Pack, typename Convolve>
void EmitPacked(Lowering& lowering, std::string name, const Convolution& c, const Conv& conv,
                const Pack& pack, const Convolve& convolve) {
  const Region packed = lowering.Scratch(conv.weight_elements() * SizeOf(DType::kBFloat16));
  const int64_t floats = conv.scratch_floats();
  const Region scratch = ThreadScratch(lowering, floats);
  lowering.Emit({.name = std::move(name),
                 .reads = {c.x, c.weight, c.bias},
                 .writes = {c.y, packed, scratch},
                 .run = [=](const RunContext& run) {
                   run.team->For(conv.out_blocks, [&](int64_t begin, int64_t end) {
                     pack(run.At<const float>(c.weight), run.At<uint16_t>(packed), begin, end);
                   });
                   const float* bias = c.has_bias ? run.At<const float>(c.bias) : nullptr;
                   ForWithScratch(run, scratch, floats, conv.items(),
                                  [&](float* own, int64_t begin, int64_t end) {
                                    convolve(run.At<const uint16_t>(c.x), run.At<const uint16_t>(packed),
                                             bias, run.At<uint16_t>(c.y), own, begin, end);
                                  });
                   return absl::OkStatus();
                 }});
}

// Adds the convolution of the problem, or its data gradient. `direct` is the problem, or the problem over the
// unfolded image.
void EmitConvolution(Lowering& lowering, const std::string& name, const Convolution& c, const ConvProblem& p,
                     const ConvProblem& direct, bool gradient) {
  const TileKernels* tiles = BestTileKernels();
  const TileWeights weights = gradient ? Exchanged(WeightsOf(direct)) : WeightsOf(direct);
  if (TakesTiledWinograd(lowering, p, gradient)) {
    const TileWinograd conv = WinogradOf(lowering, p, gradient);
    EmitPacked(
        lowering, absl::StrCat(name, " winograd"), c, conv,
        [=](const float* weight, uint16_t* packed, int64_t begin, int64_t end) {
          tiles->pack_winograd_weights(weights, gradient, weight, packed, begin, end);
        },
        [=](const uint16_t* x, const uint16_t* packed, const float* bias, uint16_t* y, float* scratch,
            int64_t begin, int64_t end) {
          tiles->convolve_winograd(conv, x, packed, bias, weights.outputs, y, scratch, begin, end);
        });
    return;
  }
  const Tiling tiling = TilingOf(direct, gradient);
  EmitPacked(
      lowering, name, c, tiling.conv,
      [=](const float* weight, uint16_t* packed, int64_t begin, int64_t end) {
        tiles->pack_weights(weights, weight, packed, begin, end);
      },
      [=](const uint16_t* x, const uint16_t* packed, const float* bias, uint16_t* y, float* scratch,
          int64_t begin, int64_t end) {
        tiles->convolve(tiling.conv, x, packed, bias, weights.outputs, y, scratch, begin, end);
      });
}

// Packs the pixels [first, first + pixels) of all channel blocks of two blocks of samples. Items: blocks of
// channels.
void PackPart(const RunContext& run, const TileKernels& tiles, const uint16_t* images, int64_t channel_blocks,
              int64_t image_pixels, int64_t first, int64_t pixels, bool two, bool transpose, uint16_t* to) {
  const int64_t block = channel_blocks * image_pixels * kTileElements;
  run.team->For(channel_blocks * pixels, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin / pixels; c * pixels < end; ++c) {
      const uint16_t* from = images + (c * image_pixels + first) * kTileElements;
      tiles.pack_pixels(from, two ? from + block : nullptr, transpose, to + c * pixels * kPackedPixel,
                        std::max(begin, c * pixels) - c * pixels, std::min(end - c * pixels, pixels));
    }
  });
}

// The regions of a weight gradient. x and dy are tiles.
struct GradRegions {
  Region x, dy, packed_x, packed_dy, sums, dweight;
};

// The weight gradient, summed in parts whose packed pixels fit into a cache.
struct GradSum {
  Tiling tiling;
  TileWeights weights;
  int64_t pairs = 1;        // Pairs of blocks of samples in a part, at most.
  int64_t rows = 0;         // Output rows of a part, at most.
  int64_t most_x_rows = 0;  // Input rows of a part, at most.

  // Returns the input rows [first, last) that the output rows need.
  std::pair<int64_t, int64_t> InputRows(int64_t first_row, int64_t last_row) const {
    const TileConv& conv = tiling.conv;
    int64_t first = conv.in_height;
    int64_t last = 0;
    for (int64_t i = first_row * conv.kernel_height; i < last_row * conv.kernel_height; ++i) {
      if (conv.rows[i] < 0) continue;
      first = std::min<int64_t>(first, conv.rows[i]);
      last = std::max<int64_t>(last, conv.rows[i] + 1);
    }
    return {std::min(first, last), last};
  }

  void ChooseParts() {
    const TileConv& conv = tiling.conv;
    for (rows = conv.out_height;; rows = (rows + 1) / 2) {
      most_x_rows = 0;
      for (int64_t row = 0; row < conv.out_height; row += rows) {
        const auto [first, last] = InputRows(row, std::min(row + rows, conv.out_height));
        most_x_rows = std::max(most_x_rows, last - first);
      }
      const int64_t bytes = PackedX() + PackedDy();
      if (rows == conv.out_height && bytes <= kWidePartBytes && SumBytes() > kCachedSumBytes) {
        pairs = std::min(conv.image_pairs(), kWidePartBytes / bytes);
        return;
      }
      if (rows == 1 || bytes <= kPartBytes) return;
    }
  }
  int64_t SumBytes() const { return tiling.conv.sum_floats() * static_cast<int64_t>(sizeof(float)); }
  int64_t PackedX() const {
    return pairs * most_x_rows * tiling.conv.in_width * tiling.conv.in_blocks * kPackedPixel *
           SizeOf(DType::kBFloat16);
  }
  int64_t PackedDy() const {
    return pairs * rows * tiling.conv.out_width * tiling.conv.out_blocks * kPackedPixel *
           SizeOf(DType::kBFloat16);
  }

  // Packs the images of the part's pairs.
  void Pack(const RunContext& run, const TileKernels& tiles, const GradRegions& at, int64_t first_pair,
            const TileGradPart& part) const {
    const TileConv& conv = tiling.conv;
    const int64_t x_block = conv.in_blocks * conv.in_height * conv.in_width * kTileElements;
    const int64_t dy_block = conv.out_blocks * conv.out_height * conv.out_width * kTileElements;
    const int64_t x_pixels = part.x_rows * conv.in_width;
    const int64_t dy_pixels = (part.last_row - part.first_row) * conv.out_width;
    for (int64_t i = 0; i < part.pairs; ++i) {
      const int64_t block = 2 * (first_pair + i);
      const bool two = block + 1 < conv.blocks;
      PackPart(run, tiles, run.At<const uint16_t>(at.dy) + block * dy_block, conv.out_blocks,
               conv.out_height * conv.out_width, part.first_row * conv.out_width, dy_pixels, two, true,
               run.At<uint16_t>(at.packed_dy) + i * conv.out_blocks * dy_pixels * kPackedPixel);
      PackPart(run, tiles, run.At<const uint16_t>(at.x) + block * x_block, conv.in_blocks,
               conv.in_height * conv.in_width, part.first_x_row * conv.in_width, x_pixels, two, false,
               run.At<uint16_t>(at.packed_x) + i * conv.in_blocks * x_pixels * kPackedPixel);
    }
  }

  void Run(const RunContext& run, const TileKernels& tiles, const GradRegions& at) const {
    const TileConv& conv = tiling.conv;
    TileGradPart part = {.first = true};
    for (int64_t pair = 0; pair < conv.image_pairs(); pair += pairs) {
      part.pairs = std::min(pairs, conv.image_pairs() - pair);
      for (int64_t row = 0; row < conv.out_height; row += rows) {
        part.first_row = row;
        part.last_row = std::min(row + rows, conv.out_height);
        const auto [first, last] = InputRows(part.first_row, part.last_row);
        part.first_x_row = first;
        part.x_rows = last - first;
        Pack(run, tiles, at, pair, part);
        run.team->For(conv.out_blocks * conv.in_blocks, [&](int64_t begin, int64_t end) {
          tiles.grad_weight(conv, part, run.At<const uint16_t>(at.packed_x),
                            run.At<const uint16_t>(at.packed_dy), run.At<float>(at.sums), begin, end);
        });
        part.first = false;
      }
    }
    run.team->For(weights.outputs, [&](int64_t begin, int64_t end) {
      tiles.store_grad_weight(conv, weights, run.At<const float>(at.sums), run.At<float>(at.dweight), begin,
                              end);
    });
  }
};

// The weight gradient by Winograd's transforms, one slice of outputs after the other. A slice is summed in
// groups of patches.
struct WinogradSum {
  TileWinograd conv;
  TileWeights weights;
  int64_t slice = 0;         // Blocks of outputs, at most.
  int64_t most_patches = 0;  // Of a group. An even number.

  void ChooseParts() {
    slice = std::clamp<int64_t>(kWidePartBytes / BlockSumBytes(), 1, conv.out_blocks);
    const int64_t bytes = 2 * (conv.in_blocks + slice) * PatchBytes();
    most_patches = 2 * std::clamp<int64_t>(kWidePartBytes / bytes, 1, (conv.patches() + 1) / 2);
  }
  // The packed points of a patch in a block of channels.
  static int64_t PatchBytes() { return TileWinograd::kPoints * kPackedStep / 2 * SizeOf(DType::kBFloat16); }
  int64_t PackedX() const { return most_patches * conv.in_blocks * PatchBytes(); }
  int64_t PackedDy() const { return most_patches * slice * PatchBytes(); }
  int64_t SumBytes() const { return slice * BlockSumBytes(); }
  // The sums of a block of outputs.
  int64_t BlockSumBytes() const {
    return conv.in_blocks * TileWinograd::kPoints * kTileSums * static_cast<int64_t>(sizeof(float));
  }

  void Run(const RunContext& run, const TileKernels& tiles, const GradRegions& at) const {
    for (int64_t block = 0; block < conv.out_blocks; block += slice) {
      const int64_t blocks = std::min(slice, conv.out_blocks - block);
      AddPatches(run, tiles, at, block, blocks);
      const int64_t output = block * kTileChannels;
      run.team->For(
          std::min(blocks * kTileChannels, weights.outputs - output), [&](int64_t begin, int64_t end) {
            tiles.store_winograd_grad(conv, weights, run.At<const float>(at.sums),
                                      run.At<float>(at.dweight) + output * weights.inputs * weights.taps,
                                      begin, end);
          });
    }
  }

 private:
  void AddPatches(const RunContext& run, const TileKernels& tiles, const GradRegions& at, int64_t block,
                  int64_t blocks) const {
    const uint16_t* grads =
        run.At<const uint16_t>(at.dy) + block * conv.out_height * conv.out_width * kTileElements;
    for (int64_t first = 0; first < conv.patches(); first += most_patches) {
      const int64_t last = std::min(first + most_patches, conv.patches());
      const int64_t pairs = (last - first + 1) / 2;
      const int64_t of_dy = blocks * pairs;
      run.team->For(of_dy + conv.in_blocks * pairs, [&](int64_t begin, int64_t end) {
        tiles.pack_patches(conv, true, grads, first, last, run.At<uint16_t>(at.packed_dy), begin,
                           std::min(end, of_dy));
        tiles.pack_patches(conv, false, run.At<const uint16_t>(at.x), first, last,
                           run.At<uint16_t>(at.packed_x), std::max(begin, of_dy) - of_dy, end - of_dy);
      });
      run.team->For(blocks * conv.in_blocks, [&](int64_t begin, int64_t end) {
        tiles.add_winograd_grad(conv, pairs, first == 0, run.At<const uint16_t>(at.packed_x),
                                run.At<const uint16_t>(at.packed_dy), run.At<float>(at.sums), begin, end);
      });
    }
  }
};

// Adds the step of `sum`, a GradSum or a WinogradSum.
template <typename Sum>
void EmitGradSum(Lowering& lowering, absl::string_view name, const Node& node, Region x, Region dy, Sum sum) {
  sum.ChooseParts();
  const GradRegions at = {.x = x,
                          .dy = dy,
                          .packed_x = lowering.Scratch(sum.PackedX()),
                          .packed_dy = lowering.Scratch(sum.PackedDy()),
                          .sums = lowering.Scratch(sum.SumBytes()),
                          .dweight = lowering.DefinePlain(node.outputs[0])};
  lowering.Emit({.name = std::string(name),
                 .reads = {x, dy},
                 .writes = {at.dweight, at.packed_x, at.packed_dy, at.sums},
                 .run = [=, tiles = BestTileKernels()](const RunContext& run) {
                   sum.Run(run, *tiles, at);
                   return absl::OkStatus();
                 }});
}

}  // namespace

bool TakesTiles(const Lowering& lowering, const ConvProblem& p) {
  if (lowering.compute() != DType::kBFloat16 || lowering.algorithms() == Algorithms::kOneDnn) return false;
  if (p.geometry.groups != 1 || p.x[0] % kTileSamples != 0 || p.y.elements() == 0) return false;
  if (TakesBatchBlocked(lowering, p) || BestTileKernels() == nullptr) return false;
  return p.y[1] >= kTileChannels / 2 && (p.x[1] >= kTileChannels / 2 || Unfolds(p));
}

absl::Status LowerTiledConvForward(Lowering& lowering, const Node& node, const ConvProblem& p) {
  Convolution c;
  if (Unfolds(p)) {
    TANDEM_ASSIGN_OR_RETURN(c.x, UnfoldInput(lowering, node.inputs[0], p));
  } else {
    TANDEM_ASSIGN_OR_RETURN(c.x, lowering.Get(node.inputs[0], Layout::Tiled(p.x)));
  }
  TANDEM_ASSIGN_OR_RETURN(c.weight, lowering.GetPlain(node.inputs[1]));
  c.bias = c.weight;
  c.has_bias = node.inputs.size() == 3;
  if (c.has_bias) {
    TANDEM_ASSIGN_OR_RETURN(c.bias, lowering.GetPlain(node.inputs[2]));
  }
  c.y = lowering.Define(node.outputs[0], Layout::Tiled(p.y));
  EmitConvolution(lowering, "conv2d tiled", c, p, Unfolds(p) ? Unfolded(p) : p, false);
  return absl::OkStatus();
}

absl::Status LowerTiledConvGradInput(Lowering& lowering, const Node& node, const ConvProblem& p) {
  if (Unfolds(p)) return LowerOneDnnConvGradInput(lowering, node, p);
  Convolution c;
  TANDEM_ASSIGN_OR_RETURN(c.x, lowering.Get(node.inputs[0], Layout::Tiled(p.y)));
  TANDEM_ASSIGN_OR_RETURN(c.weight, lowering.GetPlain(node.inputs[1]));
  c.bias = c.weight;
  c.y = lowering.Define(node.outputs[0], Layout::Tiled(p.x));
  EmitConvolution(lowering, "conv2d_grad_input tiled", c, p, p, true);
  return absl::OkStatus();
}

absl::Status LowerTiledConvGradWeight(Lowering& lowering, const Node& node, const ConvProblem& p) {
  Region x;
  if (Unfolds(p)) {
    TANDEM_ASSIGN_OR_RETURN(x, UnfoldInput(lowering, node.inputs[0], p));
  } else {
    TANDEM_ASSIGN_OR_RETURN(x, lowering.Get(node.inputs[0], Layout::Tiled(p.x)));
  }
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[1], Layout::Tiled(p.y)));
  if (TakesTiledWinograd(lowering, p, false)) {
    EmitGradSum(lowering, "conv2d_grad_weight tiled winograd", node, x, dy,
                WinogradSum{.conv = WinogradOf(lowering, p, false), .weights = WeightsOf(p)});
  } else {
    const ConvProblem direct = Unfolds(p) ? Unfolded(p) : p;
    EmitGradSum(lowering, "conv2d_grad_weight tiled", node, x, dy,
                GradSum{.tiling = TilingOf(direct, false), .weights = WeightsOf(direct)});
  }
  if (!static_cast<const Conv2dGradWeightOp&>(*node.op).has_bias) return absl::OkStatus();
  const Region dbias = lowering.DefinePlain(node.outputs[1]);
  lowering.Emit({.name = "conv2d_grad_bias tiled",
                 .reads = {dy},
                 .writes = {dbias},
                 .run = [=, tiling = TilingOf(p, false), channels = p.y[1],
                         tiles = BestTileKernels()](const RunContext& run) {
                   run.team->For(tiling.conv.out_blocks, [&](int64_t begin, int64_t end) {
                     tiles->grad_bias(tiling.conv, run.At<const uint16_t>(dy), channels, run.At<float>(dbias),
                                      begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
