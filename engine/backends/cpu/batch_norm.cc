#include "engine/backends/cpu/batch_norm.h"

#include <cmath>
#include <utility>

#include "dnnl.hpp"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/batch_norm.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

// A tensor [N, C, ...] by its channels.
struct ChannelView {
  Layout layout;
  ChannelSizes sizes;
};

// As `layout` has it where its channels can be walked along, else as a plain tensor.
ChannelView ViewOf(const Layout& layout) {
  const Shape& shape = layout.shape();
  const int64_t positions = shape.elements() / (shape[0] * shape[1]);
  ChannelSizes sizes = {.outer = shape[0],
                        .groups = shape[1],
                        .positions = positions,
                        .lanes = 1,
                        .channel_lanes = false,
                        .samples = shape[0],
                        .channels = shape[1]};
  if (layout.batch_blocked()) {
    sizes.outer = (shape[0] + kBlock - 1) / kBlock;
    sizes.lanes = kBlock;
    return {layout, sizes};
  }
  if (layout.kind() == Layout::Kind::kOneDnn && shape.rank() == 4) {
    for (const auto& [tag, lanes] :
         {std::pair(memory::format_tag::nChw16c, 16), std::pair(memory::format_tag::nChw8c, 8)}) {
      const Layout blocked =
          Layout::OneDnn(memory::desc(Dims(shape), memory::data_type::f32, tag), layout.shape());
      if (!(blocked == layout)) continue;
      sizes.groups = (shape[1] + lanes - 1) / lanes;
      sizes.lanes = lanes;
      sizes.channel_lanes = true;
      return {layout, sizes};
    }
  }
  return {Layout::Plain(layout.dtype(), shape), sizes};
}

absl::StatusOr<ChannelView> ViewOfInput(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  return ViewOf(home.layout);
}

// Where vectors of a number a channel lie; `count` vectors one after the other.
template <typename T>
Region ChannelScratch(Lowering& lowering, const ChannelSizes& sizes, int count) {
  return lowering.Scratch(static_cast<int64_t>(sizeof(T)) * sizes.channels * count);
}

// The plain vectors [C] among the inputs, from input `first` on.
absl::StatusOr<std::vector<Region>> Vectors(Lowering& lowering, const Node& node, size_t first) {
  std::vector<Region> regions;
  for (size_t i = first; i < node.inputs.size(); ++i) {
    TANDEM_ASSIGN_OR_RETURN(regions.emplace_back(), lowering.GetPlain(node.inputs[i]));
  }
  return regions;
}

// What both gradients come to: dx = factor dy + slope (x - center) + offset, four vectors in `terms`.
void RunGrad(const RunContext& run, const ChannelSizes& sizes, Region x, Region dy, Region terms, Region dx) {
  const float* center = run.At<const float>(terms);
  const int64_t channels = sizes.channels;
  run.team->For(sizes.outer * sizes.groups, [&](int64_t begin, int64_t end) {
    run.kernels->channel_grad(sizes, run.At<const float>(x), run.At<const float>(dy), center,
                              center + channels, center + 2 * channels, center + 3 * channels,
                              run.At<float>(dx), begin, end);
  });
}

// The gradient of the normalisation by statistics that follow x where `training`, else by constant ones.
// `inv_std_of` makes 1 / standard deviation of the last input.
template <typename InvStd>
absl::Status LowerGrad(Lowering& lowering, const Node& node, bool training, const InvStd& inv_std_of) {
  TANDEM_ASSIGN_OR_RETURN(const ChannelView view, ViewOfInput(lowering, node));
  const ChannelSizes sizes = view.sizes;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], view.layout));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[1], view.layout));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, Vectors(lowering, node, 2));
  const Region weight = vectors[0], mean = vectors[1], deviation = vectors[2];
  const Region dx = lowering.Define(node.outputs[0], view.layout);
  const Layout plain = Layout::Plain(DType::kFloat32, lowering.shape(node.outputs[1]));
  const Region dweight = lowering.Define(node.outputs[1], plain);
  const Region dbias = lowering.Define(node.outputs[2], plain);
  const Region sums = ChannelScratch<double>(lowering, sizes, 2);
  const Region terms = ChannelScratch<float>(lowering, sizes, 4);
  lowering.Emit(
      {.name = std::string(node.op->kind()),
       .reads = {x, dy, weight, mean, deviation},
       .writes = {dx, dweight, dbias, sums, terms},
       .in_place = {{0, 1}},
       .run = [=](const RunContext& run) {
         const int64_t channels = sizes.channels;
         double* sum = run.At<double>(sums);
         double* centered = sum + channels;
         run.team->For(sizes.groups, [&](int64_t begin, int64_t end) {
           run.kernels->channel_grad_sums(sizes, run.At<const float>(x), run.At<const float>(dy),
                                          run.At<const float>(mean), sum, centered, begin, end);
         });
         const double count = static_cast<double>(sizes.samples) * static_cast<double>(sizes.positions);
         float* term = run.At<float>(terms);
         for (int64_t c = 0; c < channels; ++c) {
           const double inv_std = inv_std_of(run.At<const float>(deviation)[c]);
           const double factor = run.At<const float>(weight)[c] * inv_std;
           term[c] = run.At<const float>(mean)[c];
           term[channels + c] = static_cast<float>(factor);
           term[2 * channels + c] =
               training ? static_cast<float>(-factor * inv_std * inv_std * centered[c] / count) : 0.0f;
           term[3 * channels + c] = training ? static_cast<float>(-factor * sum[c] / count) : 0.0f;
           run.At<float>(dweight)[c] = static_cast<float>(centered[c] * inv_std);
           run.At<float>(dbias)[c] = static_cast<float>(sum[c]);
         }
         RunGrad(run, sizes, x, dy, terms, dx);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

// y = factor (x - center) + bias.
void RunAffine(const RunContext& run, const ChannelSizes& sizes, Region x, const float* center,
               const float* factor, Region bias, Region y) {
  run.team->For(sizes.outer * sizes.groups, [&](int64_t begin, int64_t end) {
    run.kernels->channel_affine(sizes, run.At<const float>(x), center, factor, run.At<const float>(bias),
                                run.At<float>(y), begin, end);
  });
}

}  // namespace

absl::Status LowerBatchNorm(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const ChannelView view, ViewOfInput(lowering, node));
  const ChannelSizes sizes = view.sizes;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], view.layout));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, Vectors(lowering, node, 1));
  const Region weight = vectors[0], bias = vectors[1], running_mean = vectors[2], running_var = vectors[3];
  for (const int i : node.op->MutatedInputs()) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[i]));
    if (!home.layout.plain()) return absl::InternalError("cpu: running statistics do not lie plain");
  }
  const Region y = lowering.Define(node.outputs[0], view.layout);
  const Layout plain = Layout::Plain(DType::kFloat32, lowering.shape(node.outputs[1]));
  const Region mean = lowering.Define(node.outputs[1], plain);
  const Region inv_std = lowering.Define(node.outputs[2], plain);
  const Region moments = ChannelScratch<double>(lowering, sizes, 2);
  const Region factors = ChannelScratch<float>(lowering, sizes, 1);
  const auto& op = static_cast<const BatchNormOp&>(*node.op);
  const double momentum = op.momentum;
  const double epsilon = op.epsilon;
  lowering.Emit({.name = "batch_norm",
                 .reads = {x, weight, bias, running_mean, running_var},
                 .writes = {y, mean, inv_std, moments, factors, running_mean, running_var},
                 .run = [=](const RunContext& run) {
                   const int64_t channels = sizes.channels;
                   double* means = run.At<double>(moments);
                   double* squares = means + channels;
                   run.team->For(sizes.groups, [&](int64_t begin, int64_t end) {
                     run.kernels->channel_moments(sizes, run.At<const float>(x), means, squares, begin, end);
                   });
                   const double count =
                       static_cast<double>(sizes.samples) * static_cast<double>(sizes.positions);
                   for (int64_t c = 0; c < channels; ++c) {
                     const double inverse = 1 / std::sqrt(squares[c] / count + epsilon);
                     run.At<float>(mean)[c] = static_cast<float>(means[c]);
                     run.At<float>(inv_std)[c] = static_cast<float>(inverse);
                     run.At<float>(factors)[c] = static_cast<float>(run.At<const float>(weight)[c] * inverse);
                     float& old_mean = run.At<float>(running_mean)[c];
                     float& old_var = run.At<float>(running_var)[c];
                     old_mean = static_cast<float>(old_mean + momentum * (means[c] - old_mean));
                     if (count > 1)
                       old_var =
                           static_cast<float>(old_var + momentum * (squares[c] / (count - 1) - old_var));
                   }
                   RunAffine(run, sizes, x, run.At<const float>(mean), run.At<const float>(factors), bias, y);
                   return absl::OkStatus();
                 }});
  for (const int i : node.op->MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

absl::Status LowerBatchNormGrad(Lowering& lowering, const Node& node) {
  return LowerGrad(lowering, node, /*training=*/true, [](float inv_std) { return double{inv_std}; });
}

absl::Status LowerBatchNormInference(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const ChannelView view, ViewOfInput(lowering, node));
  const ChannelSizes sizes = view.sizes;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], view.layout));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, Vectors(lowering, node, 1));
  const Region weight = vectors[0], bias = vectors[1], mean = vectors[2], variance = vectors[3];
  const Region y = lowering.Define(node.outputs[0], view.layout);
  const Region factors = ChannelScratch<float>(lowering, sizes, 1);
  const double epsilon = static_cast<const BatchNormInferenceOp&>(*node.op).epsilon;
  lowering.Emit({.name = "batch_norm_inference",
                 .reads = {x, weight, bias, mean, variance},
                 .writes = {y, factors},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   for (int64_t c = 0; c < sizes.channels; ++c) {
                     const double inverse = 1 / std::sqrt(run.At<const float>(variance)[c] + epsilon);
                     run.At<float>(factors)[c] = static_cast<float>(run.At<const float>(weight)[c] * inverse);
                   }
                   RunAffine(run, sizes, x, run.At<const float>(mean), run.At<const float>(factors), bias, y);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerBatchNormInferenceGrad(Lowering& lowering, const Node& node) {
  const double epsilon = static_cast<const BatchNormInferenceGradOp&>(*node.op).epsilon;
  return LowerGrad(lowering, node, /*training=*/false,
                   [epsilon](float variance) { return 1 / std::sqrt(variance + epsilon); });
}

}  // namespace tandem::cpu
