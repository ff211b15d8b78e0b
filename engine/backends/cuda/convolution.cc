#include "engine/graph/ops/convolution.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/bias.h"
#include "engine/backends/cuda/kernels/bias.h"
#include "engine/backends/cuda/kernels/patches.h"
#include "engine/backends/cuda/offered.h"
#include "engine/backends/cuda/product.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// The layout of a convolution's tensors: channels last, in the type of the computation.
Layout FactorLayout(const Lowering& lowering, const ConvolutionSpec& spec, ValueId id) {
  return Layout::ChannelsLast(spec.type, lowering.shape(id));
}

absl::StatusOr<Region> GetFactor(Lowering& lowering, const ConvolutionSpec& spec, ValueId id) {
  return lowering.Get(id, FactorLayout(lowering, spec, id));
}

// Uses float32, and changes the spec, if the library has no algorithm in the spec's type.
absl::StatusOr<std::shared_ptr<const Convolution>> PlanConvolution(Lowering& lowering,
                                                                   ConvolutionSpec& spec) {
  absl::StatusOr<std::unique_ptr<Convolution>> planned =
      lowering.device().dnn->Plan(spec, lowering.workspace_cap());
  if (absl::IsUnimplemented(planned.status()) && spec.type != DType::kFloat32) {
    spec.type = DType::kFloat32;
    planned = lowering.device().dnn->Plan(spec, lowering.workspace_cap());
  }
  TANDEM_RETURN_IF_ERROR(planned.status());
  return std::shared_ptr<const Convolution>(*std::move(planned));
}

ConvolutionSpec SpecOf(const Lowering& lowering, ConvolutionKind kind, const Shape& x, const Shape& weight,
                       const Shape& y, const Conv2dGeometry& geometry) {
  return {.kind = kind,
          .n = x[0],
          .c = x[1],
          .h = x[2],
          .w = x[3],
          .k = weight[0],
          .kernel_h = weight[2],
          .kernel_w = weight[3],
          .out_h = y[2],
          .out_w = y[3],
          .stride_h = geometry.stride.h,
          .stride_w = geometry.stride.w,
          .pad_h = geometry.padding.h,
          .pad_w = geometry.padding.w,
          .dilation_h = geometry.dilation.h,
          .dilation_w = geometry.dilation.w,
          .groups = geometry.groups,
          .type = lowering.compute()};
}

// Adds the step of a convolution that reads two tensors and writes the third.
void EmitConvolution(Lowering& lowering, std::string name, std::shared_ptr<const Convolution> convolution,
                     std::vector<Region> reads, Region written, Region x, Region weight, Region y,
                     Region bias, bool has_bias) {
  std::vector<Region> writes = {written};
  Region workspace = written;
  const bool works = convolution->workspace_bytes() > 0;
  if (works) {
    workspace = lowering.Scratch(convolution->workspace_bytes());
    writes.push_back(workspace);
  }
  lowering.Emit({.name = std::move(name),
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .run = [=](const RunContext& run) {
                   return convolution->Run(run.At(x), run.At(weight), run.At(y),
                                           has_bias ? run.At(bias) : nullptr,
                                           works ? run.At(workspace) : nullptr, run.stream);
                 }});
}

// The largest width of patches in elements. A convolution whose channels do not fill packs of 8 is computed
// as a product of patches, because cuDNN pads such images in separate passes, which take longer than the
// convolution. For wider patches cuDNN is used.
constexpr int64_t kMostPatchWidth = 512;

// Returns the patches of a convolution that is computed by patches, else nullopt.
std::optional<PatchSizes> PatchesOf(const Lowering& lowering, const ConvolutionSpec& spec) {
  constexpr int64_t kPack = 8;
  constexpr int64_t kMostElements = int64_t{1} << 31;
  const int64_t width = (spec.kernel_h * spec.kernel_w * spec.c + kPack - 1) / kPack * kPack;
  if (spec.groups != 1 || spec.c % kPack == 0 || width > kMostPatchWidth) return std::nullopt;
  const PatchSizes sizes = {.n = spec.n,
                            .h = spec.h,
                            .w = spec.w,
                            .c = spec.c,
                            .out_h = spec.out_h,
                            .out_w = spec.out_w,
                            .kernel_h = spec.kernel_h,
                            .kernel_w = spec.kernel_w,
                            .stride_h = spec.stride_h,
                            .stride_w = spec.stride_w,
                            .pad_h = spec.pad_h,
                            .pad_w = spec.pad_w,
                            .dilation_h = spec.dilation_h,
                            .dilation_w = spec.dilation_w,
                            .width = width};
  // The product gets half of the limit.
  if (sizes.rows() * sizes.width * SizeOf(spec.type) > lowering.workspace_cap() / 2) return std::nullopt;
  if (spec.n * spec.h * spec.w * spec.c >= kMostElements) return std::nullopt;
  return sizes;
}

Region EmitPatches(Lowering& lowering, const PatchSizes& sizes, DType type, Region x) {
  const Region patches = lowering.Scratch(sizes.rows() * sizes.width * SizeOf(type));
  lowering.Emit(
      {.name = "conv2d: patches", .reads = {x}, .writes = {patches}, .run = [=](const RunContext& run) {
         MakePatches(sizes, type, run.At(x), run.At(patches), run.stream);
         return absl::OkStatus();
       }});
  return patches;
}

// y = patches * weight^T. The weights are padded like the patches.
absl::Status LowerForwardByPatches(Lowering& lowering, const Node& node, const ConvolutionSpec& spec,
                                   const PatchSizes& sizes, const Node* relu) {
  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, spec, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, spec, node.inputs[1]));
  if (relu != nullptr) lowering.Absorb(relu->id);
  const Region patches = EmitPatches(lowering, sizes, spec.type, x);
  const Region padded = lowering.Scratch(spec.k * sizes.width * SizeOf(spec.type));
  const int64_t columns = spec.kernel_h * spec.kernel_w * spec.c;
  lowering.Emit({.name = "conv2d: pad",
                 .reads = {weight},
                 .writes = {padded},
                 .run = [=, rows = spec.k, width = sizes.width, type = spec.type](const RunContext& run) {
                   PadRows(rows, columns, width, type, run.At(weight), run.At(padded), run.stream);
                   return absl::OkStatus();
                 }});
  const Region y = lowering.Define(relu != nullptr ? relu->outputs[0] : node.outputs[0],
                                   FactorLayout(lowering, spec, node.outputs[0]));
  const GemmSpec product = {.m = sizes.rows(),
                            .n = spec.k,
                            .k = sizes.width,
                            .transpose_b = true,
                            .type = spec.type,
                            .result_type = spec.type,
                            .bias = spec.bias};
  return EmitProductTo(lowering, relu != nullptr ? "conv2d + relu" : "conv2d", product, patches, padded,
                       spec.bias ? node.inputs[2] : kNoValue, relu != nullptr, y,
                       lowering.workspace_cap() / 2);
}

// The gradient of x = dy * weight, folded.
absl::Status LowerGradInputByPatches(Lowering& lowering, const Node& node, const ConvolutionSpec& spec,
                                     const PatchSizes& sizes) {
  TANDEM_ASSIGN_OR_RETURN(const Region dy, GetFactor(lowering, spec, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, spec, node.inputs[1]));
  const Region patches = lowering.Scratch(sizes.rows() * sizes.width * SizeOf(spec.type));
  const GemmSpec product = {.m = sizes.rows(),
                            .n = spec.kernel_h * spec.kernel_w * spec.c,
                            .k = spec.k,
                            .row_c = sizes.width,
                            .type = spec.type,
                            .result_type = spec.type};
  TANDEM_RETURN_IF_ERROR(EmitProductTo(lowering, "conv2d_grad_input", product, dy, weight, kNoValue, false,
                                       patches, lowering.workspace_cap() / 2));
  const Region dx = lowering.Define(node.outputs[0], FactorLayout(lowering, spec, node.outputs[0]));
  lowering.Emit({.name = "conv2d_grad_input: fold",
                 .reads = {patches},
                 .writes = {dx},
                 .run = [=, type = spec.type](const RunContext& run) {
                   FoldPatches(sizes, type, run.At(patches), run.At(dx), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerForward(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const bool has_bias = node.inputs.size() == 3;
  const Node* relu = lowering.ReluAfter(node);
  ConvolutionSpec spec = SpecOf(lowering, ConvolutionKind::kForward, lowering.shape(node.inputs[0]),
                                lowering.shape(node.inputs[1]), lowering.shape(node.outputs[0]),
                                static_cast<const Conv2dOp&>(*node.op).geometry);
  spec.bias = has_bias;
  if (const std::optional<PatchSizes> patches = PatchesOf(lowering, spec); patches.has_value()) {
    return LowerForwardByPatches(lowering, node, spec, *patches, relu);
  }
  spec.relu = relu != nullptr;
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<const Convolution> convolution,
                          PlanConvolution(lowering, spec));
  const bool adds_bias = has_bias && convolution->adds_bias();
  // Another kernel does the parts that the library does not do. The ReLU alone has its own kernel.
  const bool bias_remains = has_bias && !adds_bias;
  const bool with_relu = relu != nullptr && (convolution->takes_relu() || bias_remains);
  const bool relu_remains = with_relu && !convolution->takes_relu();
  if (with_relu) lowering.Absorb(relu->id);

  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, spec, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, spec, node.inputs[1]));
  Region bias = x;
  if (has_bias) {
    const DType type = adds_bias ? spec.type : DType::kFloat32;
    TANDEM_ASSIGN_OR_RETURN(bias, lowering.Get(node.inputs[2], Layout::Plain(type, Shape({spec.k}))));
  }
  const Layout layout = FactorLayout(lowering, spec, node.outputs[0]);
  const Region y = lowering.Define(with_relu ? relu->outputs[0] : node.outputs[0], layout);
  std::string name = "conv2d";
  if (adds_bias) name += " + bias";
  if (with_relu && !relu_remains) name += " + relu";
  std::vector<Region> reads = {x, weight};
  if (adds_bias) reads.push_back(bias);
  EmitConvolution(lowering, std::move(name), convolution, std::move(reads), y, x, weight, y, bias, adds_bias);
  if (!bias_remains) return absl::OkStatus();
  const ChannelSizes sizes = ChannelSizesOf(layout.shape());
  const bool channels_last = layout.channels_last();
  const DType type = layout.dtype();
  lowering.Emit({.name = relu_remains ? "conv2d bias + relu" : "conv2d bias",
                 .reads = {y, bias},
                 .writes = {y},
                 .run = [=](const RunContext& run) {
                   AddChannelBias(sizes, channels_last, type, run.At(y), run.At<float>(bias), relu_remains,
                                  run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerGradInput(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const Conv2dGradInputOp&>(*node.op);
  ConvolutionSpec spec = SpecOf(lowering, ConvolutionKind::kGradInput, op.input_shape,
                                lowering.shape(node.inputs[1]), lowering.shape(node.inputs[0]), op.geometry);
  if (const std::optional<PatchSizes> patches = PatchesOf(lowering, spec); patches.has_value()) {
    return LowerGradInputByPatches(lowering, node, spec, *patches);
  }
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<const Convolution> convolution,
                          PlanConvolution(lowering, spec));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, GetFactor(lowering, spec, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, spec, node.inputs[1]));
  const Region dx = lowering.Define(node.outputs[0], FactorLayout(lowering, spec, node.outputs[0]));
  EmitConvolution(lowering, "conv2d_grad_input", convolution, {dy, weight}, dx, dx, weight, dy, dy, false);
  return absl::OkStatus();
}

absl::Status LowerGradWeight(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const Conv2dGradWeightOp&>(*node.op);
  ConvolutionSpec spec = SpecOf(lowering, ConvolutionKind::kGradWeight, lowering.shape(node.inputs[0]),
                                op.weight_shape, lowering.shape(node.inputs[1]), op.geometry);
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<const Convolution> convolution,
                          PlanConvolution(lowering, spec));
  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, spec, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, GetFactor(lowering, spec, node.inputs[1]));
  const Region dweight = lowering.Define(node.outputs[0], Layout::ChannelsLast(spec.type, op.weight_shape));
  EmitConvolution(lowering, "conv2d_grad_weight", convolution, {x, dy}, dweight, x, dweight, dy, x, false);
  if (!op.has_bias) return absl::OkStatus();
  return EmitGradBias(lowering, node.inputs[1], {dy, FactorLayout(lowering, spec, node.inputs[1])},
                      node.outputs[1]);
}

}  // namespace

absl::Span<const Offered> ConvolutionOps() {
  static constexpr Offered kOps[] = {
      {"conv2d", LowerForward},
      {"conv2d_grad_input", LowerGradInput},
      {"conv2d_grad_weight", LowerGradWeight},
  };
  return kOps;
}

}  // namespace tandem::cuda
