#include "engine/backends/cpu/pooling.h"

#include <string>
#include <utility>

#include "dnnl.hpp"
#include "engine/backends/cpu/convolution.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/pooling.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

// The formats of images for pooling, all of the form [outer][height][width][lanes].
class ImageFormat {
 public:
  // Returns the format of `layout`, or plain for all others.
  static ImageFormat Of(const Layout& layout) {
    if (layout.batch_blocked()) return ImageFormat(Layout::Kind::kBatchBlocked, memory::format_tag::undef);
    if (layout.kind() == Layout::Kind::kOneDnn) {
      for (const auto tag :
           {memory::format_tag::nChw16c, memory::format_tag::nChw8c, memory::format_tag::nhwc}) {
        const ImageFormat format(Layout::Kind::kOneDnn, tag);
        if (format.LayoutOf(layout.dtype(), layout.shape()) == layout) return format;
      }
    }
    return ImageFormat(Layout::Kind::kPlain, memory::format_tag::undef);
  }

  Layout LayoutOf(DType dtype, const Shape& shape) const {
    switch (kind_) {
      case Layout::Kind::kPlain:
      case Layout::Kind::kTiled:
        return Layout::Plain(dtype, shape);
      case Layout::Kind::kBatchBlocked:
        return Layout::BatchBlocked(dtype, shape);
      case Layout::Kind::kOneDnn:
        break;
    }
    const auto type = dtype == DType::kUInt8 ? memory::data_type::u8 : memory::data_type::f32;
    return Layout::OneDnn(memory::desc(Dims(shape), type, tag_), shape);
  }

  int64_t lanes(const Shape& shape) const {
    if (kind_ == Layout::Kind::kPlain) return 1;
    if (kind_ == Layout::Kind::kBatchBlocked) return kBlock;
    if (tag_ == memory::format_tag::nhwc) return shape[1];
    return tag_ == memory::format_tag::nChw16c ? 16 : 8;
  }
  int64_t outer(const Shape& shape) const {
    const auto blocks = [](int64_t extent, int64_t block) { return (extent + block - 1) / block; };
    if (kind_ == Layout::Kind::kPlain) return shape[0] * shape[1];
    if (kind_ == Layout::Kind::kBatchBlocked) return blocks(shape[0], kBlock) * shape[1];
    return shape[0] * blocks(shape[1], lanes(shape));
  }

 private:
  ImageFormat(Layout::Kind kind, memory::format_tag tag) : kind_(kind), tag_(tag) {}
  Layout::Kind kind_;
  memory::format_tag tag_;
};

PoolSizes SizesOf(const PoolGeometry& g, int64_t outer, int64_t lanes, const Shape& x, const Shape& y,
                  bool count_padding) {
  return {.outer = outer,
          .in_height = x[2],
          .in_width = x[3],
          .out_height = y[2],
          .out_width = y[3],
          .lanes = lanes,
          .window_height = g.size.h,
          .window_width = g.size.w,
          .stride_height = g.stride.h,
          .stride_width = g.stride.w,
          .padding_height = g.padding.h,
          .padding_width = g.padding.w,
          .count_padding = count_padding};
}

PoolSizes SizesOf(const PoolGeometry& g, const ImageFormat& format, const Shape& x, const Shape& y,
                  bool count_padding) {
  return SizesOf(g, format.outer(x), format.lanes(x), x, y, count_padding);
}

PoolSizes SizesOfTiles(const PoolGeometry& g, const Shape& x, const Shape& y, bool count_padding) {
  return SizesOf(g, x[0] / kTileSamples * TileBlocks(x[1]), kTileElements, x, y, count_padding);
}

// Adds a step from tiled images to tiled images with `rows` rows. `kernel` is average_pool or its gradient.
absl::Status LowerTiledAverage(Lowering& lowering, const Node& node, const PoolSizes& sizes, int64_t rows,
                               decltype(TileKernels::average_pool) TileKernels::*kernel) {
  TANDEM_ASSIGN_OR_RETURN(const Region read,
                          lowering.Get(node.inputs[0], Layout::Tiled(lowering.shape(node.inputs[0]))));
  const Region written = lowering.Define(node.outputs[0], Layout::Tiled(lowering.shape(node.outputs[0])));
  lowering.Emit({.name = std::string(node.op->kind()) + " tiled",
                 .reads = {read},
                 .writes = {written},
                 .run = [=, tiles = BestTileKernels()](const RunContext& run) {
                   run.team->For(sizes.outer * rows, [&](int64_t begin, int64_t end) {
                     (tiles->*kernel)(sizes, run.At<const uint16_t>(read), run.At<uint16_t>(written), begin,
                                      end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerTiledMaxPool(Lowering& lowering, const Node& node, Region x) {
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  const Region y = lowering.Define(node.outputs[0], Layout::Tiled(y_shape));
  const Region index = lowering.Define(node.outputs[1], Layout::Tiled(y_shape, DType::kUInt8));
  const PoolSizes sizes = SizesOfTiles(static_cast<const MaxPool2dOp&>(*node.op).geometry,
                                       lowering.shape(node.inputs[0]), y_shape, false);
  lowering.Emit({.name = "max_pool2d tiled",
                 .reads = {x},
                 .writes = {y, index},
                 .run = [=, tiles = BestTileKernels()](const RunContext& run) {
                   run.team->For(sizes.outer * sizes.out_height, [&](int64_t begin, int64_t end) {
                     tiles->max_pool(sizes, run.At<const uint16_t>(x), run.At<uint16_t>(y),
                                     run.At<uint8_t>(index), begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerTiledMaxPoolGrad(Lowering& lowering, const Node& node, Region index) {
  const Shape& y_shape = lowering.shape(node.inputs[0]);
  const Shape& x_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[0], Layout::Tiled(y_shape)));
  const Region dx = lowering.Define(node.outputs[0], Layout::Tiled(x_shape));
  const PoolSizes sizes =
      SizesOfTiles(static_cast<const MaxPool2dGradOp&>(*node.op).geometry, x_shape, y_shape, false);
  lowering.Emit({.name = "max_pool2d_grad tiled",
                 .reads = {index, dy},
                 .writes = {dx},
                 .run = [=, tiles = BestTileKernels()](const RunContext& run) {
                   run.team->For(sizes.outer * sizes.in_height, [&](int64_t begin, int64_t end) {
                     tiles->max_pool_grad(sizes, run.At<const uint8_t>(index), run.At<const uint16_t>(dy),
                                          run.At<uint16_t>(dx), begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

// Returns whether the indices of a pooling may be in tiles: only the pooling's gradient reads them.
bool MayTileIndex(const Lowering& lowering, ValueId index) {
  if (lowering.uses().OnlyReader(index, "max_pool2d_grad") != nullptr) return true;
  return lowering.uses().readers(index).empty() && !lowering.uses().IsOutput(index);
}

// Computes the node's output. `x` is the shape of the larger images. `op` is average_pool2d or its gradient.
template <typename AveragePoolOp>
absl::Status LowerAverage(Lowering& lowering, const Node& node, const AveragePoolOp& op, const Shape& x,
                          const Shape& y, decltype(Kernels::average_pool) Kernels::*kernel,
                          decltype(TileKernels::average_pool) TileKernels::*tile_kernel) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place made, lowering.HomeAsMade(node.inputs[0]));
  if (made.layout.tiled()) {
    return LowerTiledAverage(lowering, node, SizesOfTiles(op.geometry, x, y, op.count_include_pad),
                             lowering.shape(node.outputs[0])[2], tile_kernel);
  }
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const ImageFormat format = ImageFormat::Of(home.layout);
  const PoolSizes sizes = SizesOf(op.geometry, format, x, y, op.count_include_pad);
  const Shape& read_shape = lowering.shape(node.inputs[0]);
  const Shape& written_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Region read,
                          lowering.Get(node.inputs[0], format.LayoutOf(DType::kFloat32, read_shape)));
  const Region written = lowering.Define(node.outputs[0], format.LayoutOf(DType::kFloat32, written_shape));
  lowering.Emit({.name = std::string(op.kind()),
                 .reads = {read},
                 .writes = {written},
                 .run = [=](const RunContext& run) {
                   run.team->For(sizes.outer, [&](int64_t begin, int64_t end) {
                     (run.kernels->*kernel)(sizes, run.At<const float>(read), run.At<float>(written), begin,
                                            end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PooledGrad>> FindPooledGrad(Lowering& lowering, ValueId dy) {
  std::unique_ptr<PooledGrad> none;
  const NodeId producer = lowering.value(dy).producer;
  const Node* reader = lowering.uses().OnlyReader(dy, "conv2d_grad_weight");
  if (producer == kNoNode || reader == nullptr || reader->inputs[1] != dy) return none;
  const Node& node = lowering.graph().node(producer);
  if (node.op->kind() != "max_pool2d_grad") return none;
  const ConvProblem problem = ProblemOfGradWeight(lowering, *reader);
  if (!TakesBatchBlocked(lowering, problem) || TakesWinograd(lowering, problem)) return none;
  TANDEM_ASSIGN_OR_RETURN(const Place index, lowering.Home(node.inputs[1]));
  if (!index.layout.batch_blocked()) return none;
  auto grad = std::make_unique<PooledGrad>();
  grad->index = index.region;
  grad->dpooled = node.inputs[0];
  grad->pooled_shape = lowering.shape(node.inputs[0]);
  grad->sizes = SizesOf(static_cast<const MaxPool2dGradOp&>(*node.op).geometry, ImageFormat::Of(index.layout),
                        lowering.shape(dy), grad->pooled_shape, false);
  return grad;
}

absl::Status LowerMaxPool(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place made, lowering.HomeAsMade(node.inputs[0]));
  if (made.layout.tiled() && MayTileIndex(lowering, node.outputs[1])) {
    return LowerTiledMaxPool(lowering, node, made.region);
  }
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  const ImageFormat format = ImageFormat::Of(home.layout);
  TANDEM_ASSIGN_OR_RETURN(const Region x,
                          lowering.Get(node.inputs[0], format.LayoutOf(DType::kFloat32, x_shape)));
  const Region y = lowering.Define(node.outputs[0], format.LayoutOf(DType::kFloat32, y_shape));
  const Region index = lowering.Define(node.outputs[1], format.LayoutOf(DType::kUInt8, y_shape));
  const PoolSizes sizes =
      SizesOf(static_cast<const MaxPool2dOp&>(*node.op).geometry, format, x_shape, y_shape, false);
  lowering.Emit({.name = "max_pool2d", .reads = {x}, .writes = {y, index}, .run = [=](const RunContext& run) {
                   run.team->For(sizes.outer, [&](int64_t begin, int64_t end) {
                     run.kernels->max_pool(sizes, run.At<const float>(x), run.At<float>(y),
                                           run.At<uint8_t>(index), begin, end);
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerMaxPoolGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<PooledGrad> left, FindPooledGrad(lowering, node.outputs[0]));
  if (left != nullptr) return absl::OkStatus();
  // The gradient is converted to the index's layout, not the index.
  TANDEM_ASSIGN_OR_RETURN(const Place index_home, lowering.Home(node.inputs[1]));
  if (index_home.layout.tiled()) return LowerTiledMaxPoolGrad(lowering, node, index_home.region);
  const Shape& y_shape = lowering.shape(node.inputs[0]);
  const Shape& x_shape = lowering.shape(node.outputs[0]);
  const ImageFormat format = ImageFormat::Of(index_home.layout);
  const Region index = index_home.region;
  TANDEM_ASSIGN_OR_RETURN(const Region dy,
                          lowering.Get(node.inputs[0], format.LayoutOf(DType::kFloat32, y_shape)));
  const Region dx = lowering.Define(node.outputs[0], format.LayoutOf(DType::kFloat32, x_shape));
  const PoolSizes sizes =
      SizesOf(static_cast<const MaxPool2dGradOp&>(*node.op).geometry, format, x_shape, y_shape, false);
  lowering.Emit(
      {.name = "max_pool2d_grad", .reads = {index, dy}, .writes = {dx}, .run = [=](const RunContext& run) {
         run.team->For(sizes.outer, [&](int64_t begin, int64_t end) {
           run.kernels->max_pool_grad(sizes, run.At<const uint8_t>(index), run.At<const float>(dy),
                                      run.At<float>(dx), begin, end);
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerAveragePool(Lowering& lowering, const Node& node) {
  return LowerAverage(lowering, node, static_cast<const AveragePool2dOp&>(*node.op),
                      lowering.shape(node.inputs[0]), lowering.shape(node.outputs[0]), &Kernels::average_pool,
                      &TileKernels::average_pool);
}

absl::Status LowerAveragePoolGrad(Lowering& lowering, const Node& node) {
  return LowerAverage(lowering, node, static_cast<const AveragePool2dGradOp&>(*node.op),
                      lowering.shape(node.outputs[0]), lowering.shape(node.inputs[0]),
                      &Kernels::average_pool_grad, &TileKernels::average_pool_grad);
}

}  // namespace tandem::cpu
