#include "engine/backends/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/batch_norm.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

// The number of parts of a sum, for any number of threads, so that results do not depend on them.
constexpr int64_t kParts = 16;

// A tensor [N, C, ...] by its channels.
struct ChannelView {
  Layout layout;
  ChannelSizes sizes;
};

// Returns the view of `layout` if its channels can be walked. Otherwise the tensor is converted to plain or,
// in bfloat16, to blocked channels.
ChannelView ViewOf(const Layout& layout) {
  const Shape& shape = layout.shape();
  const int64_t positions = shape.elements() / (shape[0] * shape[1]);
  const bool bfloat16 = layout.dtype() == DType::kBFloat16;
  ChannelSizes sizes = {.outer = shape[0],
                        .groups = shape[1],
                        .positions = positions,
                        .lanes = 1,
                        .channel_lanes = false,
                        .samples = shape[0],
                        .channels = shape[1],
                        .parts = std::min(kParts, shape[0]),
                        .bfloat16 = bfloat16};
  if (layout.batch_blocked()) {
    sizes.outer = (shape[0] + kBlock - 1) / kBlock;
    sizes.lanes = kBlock;
    sizes.parts = std::min(kParts, sizes.outer);
    return {layout, sizes};
  }
  if (layout.tiled()) {
    sizes.outer = shape[0] / kTileSamples;
    sizes.groups = TileBlocks(shape[1]);
    sizes.positions = positions * kTileSamples;
    sizes.lanes = kTileChannels;
    sizes.channel_lanes = true;
    sizes.samples = sizes.outer;
    sizes.parts = std::min(kParts, sizes.outer);
    sizes.tiled = true;
    return {layout, sizes};
  }
  if (shape.rank() == 4) {
    for (const auto& [tag, lanes] :
         {std::pair(memory::format_tag::nChw16c, 16), std::pair(memory::format_tag::nChw8c, 8)}) {
      const Layout blocked =
          Layout::OneDnn(memory::desc(Dims(shape), OneDnnType(layout.dtype()), tag), layout.shape());
      if (!bfloat16 && !(blocked == layout)) continue;
      sizes.groups = (shape[1] + lanes - 1) / lanes;
      sizes.lanes = lanes;
      sizes.channel_lanes = true;
      return {blocked, sizes};
    }
  }
  sizes.bfloat16 = false;
  return {Layout::Plain(DType::kFloat32, shape), sizes};
}

absl::StatusOr<ChannelView> ViewOfInput(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  return ViewOf(home.layout);
}

double CountOf(const ChannelSizes& sizes) {
  return static_cast<double>(sizes.samples) * static_cast<double>(sizes.positions);
}

// Returns scratch for `count` vectors with a number for each channel, one after the other.
template <typename T>
Region ChannelScratch(Lowering& lowering, const ChannelSizes& sizes, int count) {
  return lowering.Scratch(static_cast<int64_t>(sizeof(T)) * sizes.channels * count);
}

Region PartialScratch(Lowering& lowering, const ChannelSizes& sizes) {
  return lowering.Scratch(static_cast<int64_t>(sizeof(double)) * kChannelPartial * sizes.groups *
                          sizes.parts);
}

// Returns the first number of a channel in the partial sums of part `part`.
const double* PartialOf(const ChannelSizes& sizes, const double* partials, int64_t channel, int64_t part) {
  const int64_t group = sizes.channel_lanes ? channel / sizes.lanes : channel;
  const int64_t lane = sizes.channel_lanes ? channel % sizes.lanes : 0;
  return partials + (group * sizes.parts + part) * kChannelPartial + lane;
}

// The result of a normalisation with the ops after it: its place, and the needs of its step.
struct Result {
  Region y;
  Region addend;
  bool adds = false;
  bool relu = false;
  std::string suffix;
};

// Takes the sum and the ReLU after the normalisation.
absl::StatusOr<Result> DefineResult(Lowering& lowering, const Node& node, const Layout& layout, Region x) {
  Result result;
  result.addend = x;
  ValueId output = node.outputs[0];
  if (const ForwardGroup* group = lowering.fusions().From(node); group != nullptr) {
    if (group->add != nullptr) {
      TANDEM_ASSIGN_OR_RETURN(result.addend, lowering.Get(group->addend, layout));
    }
    result.adds = group->add != nullptr;
    result.relu = group->relu != nullptr;
    result.suffix = absl::StrCat(result.adds ? " + add" : "", result.relu ? " + relu" : "");
    lowering.Accept(*group);
    output = group->result();
  }
  result.y = lowering.Define(output, layout);
  return result;
}

void RunNormalize(const RunContext& run, const ChannelSizes& sizes, Region x, const float* center,
                  const float* factor, Region bias, const Result& result) {
  const ChannelAffine affine = {
      .center = center, .factor = factor, .offset = run.At<const float>(bias), .relu = result.relu};
  run.team->For(sizes.outer * sizes.groups, [&](int64_t begin, int64_t end) {
    run.kernels->channel_normalize(sizes, affine, run.At<const void>(x),
                                   result.adds ? run.At<const void>(result.addend) : nullptr,
                                   run.At<void>(result.y), begin, end);
  });
}

// Computes the mean and the sum of squared differences of each channel from those of the parts (Chan et al.
// 1979).
void MergeMoments(const ChannelSizes& sizes, const double* partials, int64_t channel, double* mean,
                  double* squares) {
  double count = 0;
  *mean = *squares = 0;
  for (int64_t part = 0; part < sizes.parts; ++part) {
    const double* partial = PartialOf(sizes, partials, channel, part);
    const int64_t group = sizes.channel_lanes ? channel / sizes.lanes : channel;
    const double more = partials[(group * sizes.parts + part) * kChannelPartial + 2 * kPartialLanes];
    const double difference = partial[0] - *mean;
    const double total = count + more;
    *squares += partial[kPartialLanes] + difference * difference * count * more / total;
    *mean += difference * more / total;
    count = total;
  }
}

}  // namespace

absl::Status LowerBatchNorm(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const ChannelView view, ViewOfInput(lowering, node));
  const ChannelSizes sizes = view.sizes;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], view.layout));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, lowering.GetAllPlain(node, 1));
  const Region weight = vectors[0], bias = vectors[1], running_mean = vectors[2], running_var = vectors[3];
  for (const int i : node.op->MutatedInputs()) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[i]));
    if (!home.layout.plain()) return absl::InternalError("cpu: running statistics do not lie plain");
  }
  TANDEM_ASSIGN_OR_RETURN(const Result result, DefineResult(lowering, node, view.layout, x));
  const Layout plain = Layout::Plain(DType::kFloat32, lowering.shape(node.outputs[1]));
  const Region mean = lowering.Define(node.outputs[1], plain);
  const Region inv_std = lowering.Define(node.outputs[2], plain);
  const Region moments = PartialScratch(lowering, sizes);
  const Region factors = ChannelScratch<float>(lowering, sizes, 1);
  const auto& op = static_cast<const BatchNormOp&>(*node.op);
  const double momentum = op.momentum;
  const double epsilon = op.epsilon;
  lowering.Emit({.name = "batch_norm" + result.suffix,
                 .reads = {x, weight, bias, running_mean, running_var, result.addend},
                 .writes = {result.y, mean, inv_std, moments, factors, running_mean, running_var},
                 .in_place = {{0, 5}},
                 .run = [=](const RunContext& run) {
                   double* partials = run.At<double>(moments);
                   run.team->For(sizes.groups * sizes.parts, [&](int64_t begin, int64_t end) {
                     run.kernels->channel_moments(sizes, run.At<const void>(x), partials, begin, end);
                   });
                   const double count = CountOf(sizes);
                   for (int64_t c = 0; c < sizes.channels; ++c) {
                     double center = 0;
                     double squares = 0;
                     MergeMoments(sizes, partials, c, &center, &squares);
                     const float inverse = static_cast<float>(1 / std::sqrt(squares / count + epsilon));
                     run.At<float>(mean)[c] = static_cast<float>(center);
                     run.At<float>(inv_std)[c] = inverse;
                     run.At<float>(factors)[c] = run.At<const float>(weight)[c] * inverse;
                     float& old_mean = run.At<float>(running_mean)[c];
                     float& old_var = run.At<float>(running_var)[c];
                     old_mean = static_cast<float>(old_mean + momentum * (center - old_mean));
                     if (count > 1) {
                       old_var = static_cast<float>(old_var + momentum * (squares / (count - 1) - old_var));
                     }
                   }
                   RunNormalize(run, sizes, x, run.At<const float>(mean), run.At<const float>(factors), bias,
                                result);
                   return absl::OkStatus();
                 }});
  for (const int i : node.op->MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

absl::Status LowerBatchNormInference(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const ChannelView view, ViewOfInput(lowering, node));
  const ChannelSizes sizes = view.sizes;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], view.layout));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, lowering.GetAllPlain(node, 1));
  const Region weight = vectors[0], bias = vectors[1], mean = vectors[2], variance = vectors[3];
  TANDEM_ASSIGN_OR_RETURN(const Result result, DefineResult(lowering, node, view.layout, x));
  const Region factors = ChannelScratch<float>(lowering, sizes, 1);
  const double epsilon = static_cast<const BatchNormInferenceOp&>(*node.op).epsilon;
  std::vector<Region> reads = {x, weight, bias, mean, variance};
  std::vector<std::pair<int, int>> in_place = {{0, 0}};
  if (result.adds) {
    reads.push_back(result.addend);
    in_place.push_back({0, 5});
  }
  lowering.Emit({.name = "batch_norm_inference" + result.suffix,
                 .reads = std::move(reads),
                 .writes = {result.y, factors},
                 .in_place = std::move(in_place),
                 .run = [=](const RunContext& run) {
                   for (int64_t c = 0; c < sizes.channels; ++c) {
                     const double inverse = 1 / std::sqrt(run.At<const float>(variance)[c] + epsilon);
                     run.At<float>(factors)[c] = static_cast<float>(run.At<const float>(weight)[c] * inverse);
                   }
                   RunNormalize(run, sizes, x, run.At<const float>(mean), run.At<const float>(factors), bias,
                                result);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

namespace {

// Adds up the parts' sums. Computes the gradients of scale and shift, and the terms of dx: factor, slope and
// shift, one vector after the other.
struct GradTerms {
  ChannelSizes sizes;
  bool training = false;
  Region sums, weight, dweight, dbias, terms;

  template <typename InvStd>
  void Compute(const RunContext& run, const InvStd& inv_std_of) const {
    const double* partials = run.At<const double>(sums);
    float* term = run.At<float>(terms);
    const int64_t channels = sizes.channels;
    const double count = CountOf(sizes);
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      double centered = 0;
      for (int64_t part = 0; part < sizes.parts; ++part) {
        const double* partial = PartialOf(sizes, partials, c, part);
        sum += partial[0];
        centered += partial[kPartialLanes];
      }
      const double inv_std = inv_std_of(c);
      const double factor = run.At<const float>(weight)[c] * inv_std;
      term[c] = static_cast<float>(factor);
      term[channels + c] =
          training ? static_cast<float>(-factor * inv_std * inv_std * centered / count) : 0.0f;
      term[2 * channels + c] = training ? static_cast<float>(-factor * sum / count) : 0.0f;
      run.At<float>(dweight)[c] = static_cast<float>(centered * inv_std);
      run.At<float>(dbias)[c] = static_cast<float>(sum);
    }
  }
};

// Adds the gradient of the normalisation. If `training`, the statistics depend on x, else they are constants.
// `inv_std_of` computes 1 / standard deviation from the last input.
template <typename InvStd>
absl::Status LowerGrad(Lowering& lowering, const Node& node, bool training, const InvStd& inv_std_of) {
  TANDEM_ASSIGN_OR_RETURN(const ChannelView view, ViewOfInput(lowering, node));
  const ChannelSizes sizes = view.sizes;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], view.layout));
  // The result of relu_grad need not exist.
  ValueId dy_value = node.inputs[1];
  const Region* taken = lowering.FindSums(node.id);
  Region bias;
  bool relu = false;
  if (taken != nullptr && !lowering.IsMade(dy_value)) {
    const Node& relu_grad = lowering.graph().node(lowering.value(dy_value).producer);
    const BackwardGroup& group = *lowering.fusions().Backward(relu_grad);
    TANDEM_ASSIGN_OR_RETURN(bias, lowering.GetPlain(group.norm->inputs[2]));
    dy_value = relu_grad.inputs[1];
    relu = true;
  }
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(dy_value, view.layout));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Region> vectors, lowering.GetAllPlain(node, 2));
  const Region weight = vectors[0], mean = vectors[1], deviation = vectors[2];
  if (!relu) bias = mean;
  const Region dx = lowering.Define(node.outputs[0], view.layout);
  const Layout plain = Layout::Plain(DType::kFloat32, lowering.shape(node.outputs[1]));
  GradTerms grad;
  grad.sizes = sizes;
  grad.training = training;
  grad.weight = weight;
  grad.dweight = lowering.Define(node.outputs[1], plain);
  grad.dbias = lowering.Define(node.outputs[2], plain);
  grad.terms = ChannelScratch<float>(lowering, sizes, 3);
  const bool sums = taken == nullptr;
  std::vector<Region> reads = {x, dy, weight, mean, deviation, bias};
  std::vector<Region> writes = {dx, grad.dweight, grad.dbias, grad.terms};
  if (sums) {
    grad.sums = PartialScratch(lowering, sizes);
    writes.push_back(grad.sums);
  } else {
    grad.sums = *taken;
    reads.push_back(grad.sums);
  }
  lowering.Emit(
      {.name = absl::StrCat(node.op->kind(), sums ? "" : " after sums", relu ? " + relu_grad" : ""),
       .reads = std::move(reads),
       .writes = std::move(writes),
       .in_place = {{0, 1}},
       .run = [=](const RunContext& run) {
         ChannelAffine affine = {.center = run.At<const float>(mean),
                                 .factor = run.At<const float>(mean),
                                 .offset = run.At<const float>(bias)};
         const ChannelGradArrays arrays = {.x = run.At<const void>(x), .dy = run.At<const void>(dy)};
         if (sums) {
           run.team->For(sizes.groups * sizes.parts, [&](int64_t begin, int64_t end) {
             run.kernels->channel_grad_sums(sizes, affine, arrays, run.At<double>(grad.sums), begin, end);
           });
         }
         grad.Compute(run, [&](int64_t c) { return inv_std_of(run.At<const float>(deviation)[c]); });
         const float* terms = run.At<const float>(grad.terms);
         affine.factor = terms;
         affine.relu = relu;
         const ChannelGradTerms rest = {.slope = terms + sizes.channels, .shift = terms + 2 * sizes.channels};
         run.team->For(sizes.outer * sizes.groups, [&](int64_t begin, int64_t end) {
           run.kernels->channel_grad(sizes, affine, rest, arrays, run.At<void>(dx), begin, end);
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerReluGradSums(Lowering& lowering, const BackwardGroup& group) {
  const Node& relu_grad = *group.relu_grad;
  const Node* grad = group.norm_grad;
  const Node* sum = group.add;
  TANDEM_ASSIGN_OR_RETURN(const ChannelView view, ViewOfInput(lowering, *grad));
  const ChannelSizes sizes = view.sizes;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(grad->inputs[0], view.layout));
  TANDEM_ASSIGN_OR_RETURN(const Region mean, lowering.GetPlain(grad->inputs[3]));
  // If only the normalisation's gradient reads the masked gradient, the masked gradient is not stored. The
  // ReLU's decisions are computed again.
  const Node* norm = sum == nullptr && !group.shared ? group.norm : nullptr;
  const bool repeats = norm != nullptr;
  TANDEM_ASSIGN_OR_RETURN(const Region dy,
                          lowering.Get(sum == nullptr ? relu_grad.inputs[1] : sum->inputs[0], view.layout));
  Region dy2 = dy;
  if (sum != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(dy2, lowering.Get(sum->inputs[1], view.layout));
  }
  Region weight = mean, inv_std = mean, bias = mean, y = x;
  if (repeats) {
    TANDEM_ASSIGN_OR_RETURN(weight, lowering.GetPlain(norm->inputs[1]));
    TANDEM_ASSIGN_OR_RETURN(bias, lowering.GetPlain(norm->inputs[2]));
    TANDEM_ASSIGN_OR_RETURN(inv_std, lowering.GetPlain(norm->outputs[2]));
  } else {
    TANDEM_ASSIGN_OR_RETURN(y, lowering.Get(relu_grad.inputs[0], view.layout));
  }
  const Region sums = PartialScratch(lowering, sizes);
  lowering.SetSums(grad->id, sums);
  std::vector<Region> writes = {sums};
  Region dz = sums;
  Region factors = sums;
  if (repeats) {
    factors = ChannelScratch<float>(lowering, sizes, 1);
    writes.push_back(factors);
  } else {
    dz = lowering.Define(relu_grad.outputs[0], view.layout);
    writes.push_back(dz);
  }
  const bool adds = sum != nullptr;
  std::vector<Region> reads = {x, mean, weight, inv_std, bias, dy};
  std::vector<std::pair<int, int>> in_place;
  if (!repeats) in_place.push_back({1, 5});
  if (adds) {
    in_place.push_back({1, static_cast<int>(reads.size())});
    reads.push_back(dy2);
  }
  if (!repeats) {
    in_place.push_back({1, static_cast<int>(reads.size())});
    reads.push_back(y);
  }
  lowering.Emit(
      {.name = absl::StrCat(adds ? "add + " : "", "relu_grad + batch_norm_grad sums"),
       .reads = std::move(reads),
       .writes = std::move(writes),
       .in_place = std::move(in_place),
       .run = [=](const RunContext& run) {
         const float* center = run.At<const float>(mean);
         ChannelAffine affine = {
             .center = center, .factor = center, .offset = run.At<const float>(bias), .relu = repeats};
         if (repeats) {
           float* factor = run.At<float>(factors);
           for (int64_t c = 0; c < sizes.channels; ++c) {
             factor[c] = run.At<const float>(weight)[c] * run.At<const float>(inv_std)[c];
           }
           affine.factor = factor;
         }
         const ChannelGradArrays arrays = {.x = run.At<const void>(x),
                                           .dy = run.At<const void>(dy),
                                           .dy2 = adds ? run.At<const void>(dy2) : nullptr,
                                           .y = repeats ? nullptr : run.At<const void>(y),
                                           .dz = repeats ? nullptr : run.At<void>(dz)};
         run.team->For(sizes.groups * sizes.parts, [&](int64_t begin, int64_t end) {
           run.kernels->channel_grad_sums(sizes, affine, arrays, run.At<double>(sums), begin, end);
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerBatchNormGrad(Lowering& lowering, const Node& node) {
  return LowerGrad(lowering, node, /*training=*/true, [](float inv_std) { return double{inv_std}; });
}

absl::Status LowerBatchNormInferenceGrad(Lowering& lowering, const Node& node) {
  const double epsilon = static_cast<const BatchNormInferenceGradOp&>(*node.op).epsilon;
  return LowerGrad(lowering, node, /*training=*/false,
                   [epsilon](float variance) { return 1 / std::sqrt(variance + epsilon); });
}

}  // namespace tandem::cpu
