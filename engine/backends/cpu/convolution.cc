#include "engine/backends/cpu/convolution.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cpu/linear.h"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/pooling.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/pooling.h"

namespace tandem::cpu {
namespace {

int64_t Blocks(const Shape& shape) { return (shape[0] + kBlock - 1) / kBlock; }

Shape PaddedShape(const ConvProblem& p) {
  return Shape({p.x[0], p.x[1], p.x[2] + 2 * p.geometry.padding.h, p.x[3] + 2 * p.geometry.padding.w});
}

// Returns x, batch-blocked, with its padding around it.
absl::StatusOr<Region> PaddedInput(Lowering& lowering, ValueId x, const ConvProblem& problem) {
  TANDEM_ASSIGN_OR_RETURN(const Region region, lowering.GetBatchBlocked(x));
  if (!problem.padded()) return region;
  const Region padded = lowering.Scratch(Layout::BatchBlocked(DType::kFloat32, PaddedShape(problem)).bytes());
  lowering.Emit({.name = "pad", .reads = {region}, .writes = {padded}, .run = [=](const RunContext& run) {
                   const ConvProblem& p = problem;
                   const ConvSizes sizes = p.sizes();
                   const int64_t row = p.x[3] * kBlock;
                   const int64_t padded_row = sizes.in_width * kBlock;
                   const int64_t image = sizes.in_height * padded_row;
                   const float* from = run.At<const float>(region);
                   float* to = run.At<float>(padded);
                   run.team->For(sizes.blocks * sizes.in_channels, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       std::memset(to + i * image, 0, image * sizeof(float));
                       for (int64_t h = 0; h < p.x[2]; ++h) {
                         std::memcpy(to + i * image + (h + p.geometry.padding.h) * padded_row +
                                         p.geometry.padding.w * kBlock,
                                     from + (i * p.x[2] + h) * row, row * sizeof(float));
                       }
                     }
                   });
                   return absl::OkStatus();
                 }});
  return padded;
}

// Removes the padding.
void EmitCrop(Lowering& lowering, const ConvProblem& problem, Region padded, Region cropped) {
  lowering.Emit({.name = "crop", .reads = {padded}, .writes = {cropped}, .run = [=](const RunContext& run) {
                   const ConvProblem& p = problem;
                   const ConvSizes sizes = p.sizes();
                   const int64_t row = p.x[3] * kBlock;
                   const int64_t padded_row = sizes.in_width * kBlock;
                   const float* from = run.At<const float>(padded);
                   float* to = run.At<float>(cropped);
                   run.team->For(sizes.blocks * sizes.in_channels, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       for (int64_t h = 0; h < p.x[2]; ++h) {
                         std::memcpy(to + (i * p.x[2] + h) * row,
                                     from + (i * sizes.in_height + h + p.geometry.padding.h) * padded_row +
                                         p.geometry.padding.w * kBlock,
                                     row * sizeof(float));
                       }
                     }
                   });
                   return absl::OkStatus();
                 }});
}

int64_t WinogradTileRows(const ConvSizes& sizes) {
  const int64_t tile = 7 - sizes.kernel_height;
  return (sizes.out_height() + tile - 1) / tile;
}

// Returns the weights at the points. They are computed once in a run, for the forward and the backward pass.
absl::StatusOr<Region> WinogradWeights(Lowering& lowering, ValueId weight, const ConvSizes& sizes) {
  if (const Region* found = lowering.FindTransformed(weight); found != nullptr) return *found;
  TANDEM_ASSIGN_OR_RETURN(const Region plain, lowering.GetPlain(weight));
  const Region points = lowering.Scratch(WinogradWeightFloats(sizes) * static_cast<int64_t>(sizeof(float)));
  const int64_t items = (sizes.out_channels * sizes.in_channels + kBlock - 1) / kBlock;
  lowering.Emit(
      {.name = "winograd weights", .reads = {plain}, .writes = {points}, .run = [=](const RunContext& run) {
         run.team->For(items, [&](int64_t begin, int64_t end) {
           run.kernels->winograd_weights(sizes, run.At<const float>(plain), run.At<float>(points), begin,
                                         end);
         });
         return absl::OkStatus();
       }});
  lowering.SetTransformed(weight, points);
  return points;
}

// Returns the only reader of `y`, if it is a max pooling of 2x2 windows with stride 2.
const Node* HalvingMaxPool(const Lowering& lowering, ValueId y) {
  const Node* pool = lowering.uses().OnlyReader(y, "max_pool2d");
  const PoolGeometry halves = {{2, 2}, {2, 2}, {0, 0}};
  if (pool == nullptr || static_cast<const MaxPool2dOp&>(*pool->op).geometry != halves) return nullptr;
  return pool;
}

// The result of a forward step, which also computes the ReLU or the pooling after the convolution, if any.
struct ForwardResult {
  Region y;
  Region index;  // The places of the pooling's maxima. Valid with a pooling.
  bool has_relu = false;
  bool has_pool = false;
};

// Defines the result in the batch-blocked layout. Absorbs the following op if nobody else reads the value
// between the two.
ForwardResult DefineForward(Lowering& lowering, const Node& node) {
  const auto define = [&](ValueId id, DType dtype) {
    return lowering.Define(id, Layout::BatchBlocked(dtype, lowering.shape(id)));
  };
  if (const Node* pool = HalvingMaxPool(lowering, node.outputs[0]); pool != nullptr) {
    lowering.Absorb(pool->id);
    return {.y = define(pool->outputs[0], DType::kFloat32),
            .index = define(pool->outputs[1], DType::kUInt8),
            .has_pool = true};
  }
  if (const Node* relu = lowering.ReluAfter(node); relu != nullptr) {
    lowering.Absorb(relu->id);
    return {.y = define(relu->outputs[0], DType::kFloat32), .index = {}, .has_relu = true};
  }
  return {.y = define(node.outputs[0], DType::kFloat32), .index = {}};
}

// Adds the gradient of weights. Its dy is the gradient of a pooling, which nobody else needs.
absl::Status LowerPooledGradWeight(Lowering& lowering, const Node& node, const ConvProblem& problem,
                                   const PooledGrad& pooled) {
  TANDEM_ASSIGN_OR_RETURN(const Region x, PaddedInput(lowering, node.inputs[0], problem));
  TANDEM_ASSIGN_OR_RETURN(const Region dpooled, lowering.GetBatchBlocked(pooled.dpooled));
  const Region dweight = lowering.DefinePlain(node.outputs[0]);
  const ConvSizes sizes = problem.sizes();
  const int64_t floats = BestKernels().pooled_grad_weight_scratch(sizes);
  const Region scratch = ThreadScratch(lowering, floats);
  lowering.Emit({.name = "max_pool2d_grad + conv2d_grad_weight batch-blocked",
                 .reads = {x, pooled.index, dpooled},
                 .writes = {dweight, scratch},
                 .run = [=, index = pooled.index, pool = pooled.sizes](const RunContext& run) {
                   ForWithScratch(
                       run, scratch, floats, sizes.out_channels, [&](float* own, int64_t begin, int64_t end) {
                         run.kernels->pooled_grad_weight(
                             sizes, pool, run.At<const float>(x), run.At<const uint8_t>(index),
                             run.At<const float>(dpooled), run.At<float>(dweight), own, begin, end);
                       });
                   return absl::OkStatus();
                 }});
  // Each pooled gradient goes to a single place, so the sums are equal.
  if (static_cast<const Conv2dGradWeightOp&>(*node.op).has_bias) {
    EmitGradBias(lowering, dpooled, pooled.pooled_shape, node.outputs[1]);
  }
  return absl::OkStatus();
}

}  // namespace

Region ThreadScratch(Lowering& lowering, int64_t floats) {
  return lowering.Scratch(floats * lowering.team().threads() * static_cast<int64_t>(sizeof(float)));
}

ConvSizes ConvProblem::sizes() const {
  return {.blocks = Blocks(x),
          .in_channels = x[1],
          .in_height = x[2] + 2 * geometry.padding.h,
          .in_width = x[3] + 2 * geometry.padding.w,
          .out_channels = y[1],
          .kernel_height = weight[2],
          .kernel_width = weight[3]};
}

bool TakesBatchBlocked(const Lowering& lowering, const ConvProblem& p) {
  if (lowering.algorithms() == Algorithms::kOneDnn) return false;
  const Conv2dGeometry& g = p.geometry;
  const bool simple = g.stride == Size2d{1, 1} && g.dilation == Size2d{1, 1} && g.groups == 1 &&
                      p.weight[3] <= kMaxKernelWidth;
  // If channels fill oneDNN's blocks of 16, oneDNN is as fast, and its weights stay in the cache at any size.
  // It also has kernels for first layers. The own transforms beat its direct convolution for few channels.
  const bool first_layer = p.x[1] <= 4 && p.weight[2] == 3 && p.weight[3] == 3;
  const bool pads_channels = p.y[1] % 16 != 0 || (p.x[1] % 16 != 0 && !first_layer);
  const bool few_channels = p.x[1] * p.y[1] <= 64 * 64 && !first_layer &&
                            lowering.compute() == DType::kFloat32 && !MayTakeOneDnnWinograd(lowering, p);
  return simple && (pads_channels || few_channels) && FillsBlocks(p.x[0]);
}

// A transformed channel is used once for every channel on the other side.
bool TakesWinograd(const Lowering& lowering, const ConvProblem& p) {
  if (lowering.algorithms() >= Algorithms::kWithoutWinograd) return false;
  const bool square = p.weight[2] == p.weight[3] && (p.weight[2] == 3 || p.weight[2] == 5);
  return square && p.x[1] >= 8 && p.y[1] >= 8 && p.x[1] * p.y[1] >= 200;
}

bool MayTakeOneDnnWinograd(const Lowering& lowering, const ConvProblem& p) {
  const Conv2dGeometry& g = p.geometry;
  return lowering.algorithms() < Algorithms::kWithoutWinograd && OneDnnHasWinograd() && p.weight[2] == 3 &&
         p.weight[3] == 3 && g.stride == Size2d{1, 1} && g.dilation == Size2d{1, 1} && g.groups == 1 &&
         p.x[1] >= 16 && p.y[1] >= 16;
}

ConvProblem ProblemOfForward(const Lowering& lowering, const Node& node) {
  return {lowering.shape(node.inputs[0]), lowering.shape(node.inputs[1]), lowering.shape(node.outputs[0]),
          static_cast<const Conv2dOp&>(*node.op).geometry};
}

ConvProblem ProblemOfGradWeight(const Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const Conv2dGradWeightOp&>(*node.op);
  return {lowering.shape(node.inputs[0]), op.weight_shape, lowering.shape(node.inputs[1]), op.geometry};
}

absl::Status LowerConvForward(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const ConvProblem problem = ProblemOfForward(lowering, node);
  if (TakesTiles(lowering, problem)) return LowerTiledConvForward(lowering, node, problem);
  if (!TakesBatchBlocked(lowering, problem)) return LowerOneDnnConvForward(lowering, node, problem);
  TANDEM_ASSIGN_OR_RETURN(const Region x, PaddedInput(lowering, node.inputs[0], problem));
  const ConvSizes sizes = problem.sizes();
  const bool winograd = TakesWinograd(lowering, problem);
  Region weight;
  if (winograd) {
    TANDEM_ASSIGN_OR_RETURN(weight, WinogradWeights(lowering, node.inputs[1], sizes));
  } else {
    TANDEM_ASSIGN_OR_RETURN(weight, lowering.GetPlain(node.inputs[1]));
  }
  const bool has_bias = node.inputs.size() == 3;
  Region bias = weight;
  if (has_bias) {
    TANDEM_ASSIGN_OR_RETURN(bias, lowering.GetPlain(node.inputs[2]));
  }
  const ForwardResult result = DefineForward(lowering, node);
  std::string name = winograd ? "conv2d winograd" : "conv2d batch-blocked";
  if (result.has_pool) name += " + max_pool2d";
  if (result.has_relu) name += " + relu";
  std::vector<Region> writes = {result.y};
  if (result.has_pool) writes.push_back(result.index);
  int64_t floats = 0;
  Region scratch = result.y;
  if (winograd || result.has_pool) {
    floats = winograd ? BestKernels().winograd_scratch(sizes) : BestKernels().conv_max_pool_scratch(sizes);
    scratch = ThreadScratch(lowering, floats);
    writes.push_back(scratch);
  }
  const auto run_share = [=](const RunContext& run, float* own, int64_t begin, int64_t end) {
    const float* image = run.At<const float>(x);
    const float* w = run.At<const float>(weight);
    const float* b = has_bias ? run.At<const float>(bias) : nullptr;
    float* y = run.At<float>(result.y);
    uint8_t* places = result.has_pool ? run.At<uint8_t>(result.index) : nullptr;
    if (winograd) {
      run.kernels->winograd_forward(sizes, image, w, b, result.has_relu, y, places, own, begin, end);
    } else if (result.has_pool) {
      run.kernels->conv_max_pool(sizes, image, w, b, y, places, own, begin, end);
    } else {
      run.kernels->conv_forward(sizes, image, w, b, result.has_relu, y, begin, end);
    }
  };
  const int64_t rows = winograd          ? WinogradTileRows(sizes)
                       : result.has_pool ? sizes.out_height() / 2
                                         : sizes.out_height();
  lowering.Emit({.name = std::move(name),
                 .reads = {x, weight, bias},
                 .writes = std::move(writes),
                 .run = [=](const RunContext& run) {
                   ForWithScratch(
                       run, scratch, floats, sizes.blocks * rows,
                       [&](float* own, int64_t begin, int64_t end) { run_share(run, own, begin, end); });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerConvGradInput(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const Conv2dGradInputOp&>(*node.op);
  const ConvProblem problem = {op.input_shape, lowering.shape(node.inputs[1]), lowering.shape(node.inputs[0]),
                               op.geometry};
  if (TakesTiles(lowering, problem)) return LowerTiledConvGradInput(lowering, node, problem);
  if (!TakesBatchBlocked(lowering, problem)) return LowerOneDnnConvGradInput(lowering, node, problem);
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.GetBatchBlocked(node.inputs[0]));
  const Region dx = lowering.Define(node.outputs[0], Layout::BatchBlocked(DType::kFloat32, problem.x));
  const Region target =
      problem.padded() ? lowering.Scratch(Layout::BatchBlocked(DType::kFloat32, PaddedShape(problem)).bytes())
                       : dx;
  const ConvSizes sizes = problem.sizes();
  if (TakesWinograd(lowering, problem)) {
    TANDEM_ASSIGN_OR_RETURN(const Region points, WinogradWeights(lowering, node.inputs[1], sizes));
    const int64_t floats = BestKernels().winograd_scratch(sizes);
    const Region scratch = ThreadScratch(lowering, floats);
    lowering.Emit(
        {.name = "conv2d_grad_input winograd",
         .reads = {dy, points},
         .writes = {target, scratch},
         .run = [=](const RunContext& run) {
           ForWithScratch(run, scratch, floats, sizes.blocks, [&](float* own, int64_t begin, int64_t end) {
             run.kernels->winograd_grad_input(sizes, run.At<const float>(dy), run.At<const float>(points),
                                              run.At<float>(target), own, begin, end);
           });
           return absl::OkStatus();
         }});
  } else {
    TANDEM_ASSIGN_OR_RETURN(const Region weight, lowering.GetPlain(node.inputs[1]));
    lowering.Emit({.name = "conv2d_grad_input batch-blocked",
                   .reads = {dy, weight},
                   .writes = {target},
                   .run = [=](const RunContext& run) {
                     run.team->For(sizes.blocks * sizes.in_height, [&](int64_t begin, int64_t end) {
                       run.kernels->conv_grad_input(sizes, run.At<const float>(dy),
                                                    run.At<const float>(weight), run.At<float>(target), begin,
                                                    end);
                     });
                     return absl::OkStatus();
                   }});
  }
  if (problem.padded()) EmitCrop(lowering, problem, target, dx);
  return absl::OkStatus();
}

absl::Status LowerConvGradWeight(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const Conv2dGradWeightOp&>(*node.op);
  const ConvProblem problem = ProblemOfGradWeight(lowering, node);
  if (TakesTiles(lowering, problem)) return LowerTiledConvGradWeight(lowering, node, problem);
  if (!TakesBatchBlocked(lowering, problem)) return LowerOneDnnConvGradWeight(lowering, node, problem);
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<PooledGrad> pooled, FindPooledGrad(lowering, node.inputs[1]));
  if (pooled != nullptr) return LowerPooledGradWeight(lowering, node, problem, *pooled);
  TANDEM_ASSIGN_OR_RETURN(const Region x, PaddedInput(lowering, node.inputs[0], problem));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.GetBatchBlocked(node.inputs[1]));
  const Region dweight = lowering.DefinePlain(node.outputs[0]);
  const ConvSizes sizes = problem.sizes();
  if (TakesWinograd(lowering, problem)) {
    const Region points = lowering.Scratch(WinogradGradFloats(sizes) * static_cast<int64_t>(sizeof(float)));
    const int64_t floats = BestKernels().winograd_scratch(sizes);
    const Region scratch = ThreadScratch(lowering, floats);
    lowering.Emit({.name = "conv2d_grad_weight winograd",
                   .reads = {x, dy},
                   .writes = {dweight, points, scratch},
                   .run = [=](const RunContext& run) {
                     ForWithScratch(run, scratch, floats, 6, [&](float* own, int64_t begin, int64_t end) {
                       run.kernels->winograd_grad_points(sizes, run.At<const float>(x),
                                                         run.At<const float>(dy), run.At<float>(points), own,
                                                         begin, end);
                     });
                     run.team->For((sizes.out_channels + 3) / 4, [&](int64_t begin, int64_t end) {
                       run.kernels->winograd_grad_weight(sizes, run.At<const float>(points),
                                                         run.At<float>(dweight), begin, end);
                     });
                     return absl::OkStatus();
                   }});
  } else {
    lowering.Emit({.name = "conv2d_grad_weight batch-blocked",
                   .reads = {x, dy},
                   .writes = {dweight},
                   .run = [=](const RunContext& run) {
                     run.team->For(sizes.out_channels, [&](int64_t begin, int64_t end) {
                       run.kernels->conv_grad_weight(sizes, run.At<const float>(x), run.At<const float>(dy),
                                                     run.At<float>(dweight), begin, end);
                     });
                     return absl::OkStatus();
                   }});
  }
  if (op.has_bias) EmitGradBias(lowering, dy, problem.y, node.outputs[1]);
  return absl::OkStatus();
}

}  // namespace tandem::cpu
