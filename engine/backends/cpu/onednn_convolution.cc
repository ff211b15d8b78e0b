#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "dnnl.hpp"
#include "engine/backends/cpu/convolution.h"
#include "engine/backends/cpu/memory.h"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/backends/cpu/remembered.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

memory::desc AnyDesc(const memory::dims& dims, DType dtype) {
  return memory::desc(dims, OneDnnType(dtype), memory::format_tag::any);
}

// OIHW, or GOIHW with groups.
memory::dims WeightDims(const ConvProblem& p) {
  if (p.geometry.groups == 1) return Dims(p.weight);
  const int64_t groups = p.geometry.groups;
  return {groups, p.weight[0] / groups, p.weight[1], p.weight[2], p.weight[3]};
}

memory::desc PlainWeightDesc(const ConvProblem& p) {
  const memory::dims dims = WeightDims(p);
  return PlainDesc(DType::kFloat32, Shape(std::vector<int64_t>(dims.begin(), dims.end())));
}

// Descriptions of a convolution's three primitives in oneDNN's preferred formats. In bfloat16, images and
// weights are bfloat16. Biases and the gradients of parameters stay float32.
struct Descriptions {
  memory::desc src;
  memory::desc weight;
  memory::desc grad_weight;
  memory::desc bias;
  memory::desc dst;
  memory::dims strides;
  memory::dims dilations;
  memory::dims padding;
  dnnl::primitive_attr attributes;

  Descriptions(const ConvProblem& p, DType compute, bool has_bias)
      : src(AnyDesc(Dims(p.x), compute)),
        weight(AnyDesc(WeightDims(p), compute)),
        grad_weight(AnyDesc(WeightDims(p), DType::kFloat32)),
        dst(AnyDesc(Dims(p.y), compute)),
        strides{p.geometry.stride.h, p.geometry.stride.w},
        dilations{p.geometry.dilation.h - 1, p.geometry.dilation.w - 1},
        padding{p.geometry.padding.h, p.geometry.padding.w} {
    if (has_bias) bias = PlainDesc(DType::kFloat32, Shape({p.y[1]}));
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  dnnl::convolution_forward::primitive_desc Forward(dnnl::algorithm algorithm) const {
    const auto kind = dnnl::prop_kind::forward_training;
    if (bias.is_zero()) {
      return {{kind, algorithm, src, weight, dst, strides, dilations, padding, padding},
              attributes,
              OneDnnEngine()};
    }
    return {{kind, algorithm, src, weight, bias, dst, strides, dilations, padding, padding},
            attributes,
            OneDnnEngine()};
  }
  dnnl::convolution_backward_data::primitive_desc GradInput(dnnl::algorithm algorithm) const {
    return {{algorithm, src, weight, dst, strides, dilations, padding, padding},
            attributes,
            OneDnnEngine(),
            Forward(dnnl::algorithm::convolution_direct)};
  }
  dnnl::convolution_backward_weights::primitive_desc GradWeight(dnnl::algorithm algorithm) const {
    const auto hint = Forward(dnnl::algorithm::convolution_direct);
    if (bias.is_zero()) {
      return {{algorithm, src, grad_weight, dst, strides, dilations, padding, padding},
              attributes,
              OneDnnEngine(),
              hint};
    }
    return {{algorithm, src, grad_weight, bias, dst, strides, dilations, padding, padding},
            attributes,
            OneDnnEngine(),
            hint};
  }
};

// Measures the speed of a primitive, over zeros.
class Measured {
 public:
  Measured(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& desc)
      : primitive_(primitive), stream_(OneDnnEngine()) {
    for (const int argument :
         {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_DIFF_SRC,
          DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD}) {
      const memory::desc needed = desc.query_md(dnnl::query::exec_arg_md, argument);
      if (needed.is_zero()) continue;
      memories_.push_back(Memory::Allocate(static_cast<int64_t>(needed.get_size())));
      arguments_[argument] = memory(needed, OneDnnEngine(), memories_.back().data());
    }
  }
  void Run() {
    const auto start = std::chrono::steady_clock::now();
    primitive_.execute(stream_, arguments_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best_ = std::min(best_, seconds);
  }
  // Returns seconds.
  double best() const { return best_; }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<Memory> memories_;
  std::unordered_map<int, memory> arguments_;
  double best_ = std::numeric_limits<double>::infinity();
};

// A way to compute a pass of a convolution: oneDNN's algorithm, and the type of its factors.
struct Way {
  std::string name;
  dnnl::algorithm algorithm;
  DType type;
};

// Returns the key of a measurement: everything on which it depends.
std::string ProblemText(const Lowering& lowering, const char* pass, const ConvProblem& p) {
  const Conv2dGeometry& g = p.geometry;
  return absl::StrCat(MachineText(lowering), " ", pass, " x", p.x.ToString(), " weight", p.weight.ToString(),
                      " stride[", g.stride.h, ",", g.stride.w, "] dilation[", g.dilation.h, ",", g.dilation.w,
                      "] padding[", g.padding.h, ",", g.padding.w, "] groups-", g.groups);
}

// Returns the possible ways of a pass, the plain way first.
std::vector<Way> WaysOf(const Lowering& lowering, const ConvProblem& p, bool grad_weight) {
  const DType compute = lowering.compute();
  // In bfloat16, oneDNN 2.6 then reads scratch memory that it did not write.
  if (grad_weight && compute == DType::kBFloat16 && p.x[3] < p.geometry.stride.w) {
    return {{"float32", dnnl::algorithm::convolution_direct, DType::kFloat32}};
  }
  std::vector<Way> ways = {{"direct", dnnl::algorithm::convolution_direct, compute}};
  if (lowering.algorithms() == Algorithms::kOneDnn) return ways;
  // The gradient of weights is float32 in any case. For some shapes oneDNN is slower in bfloat16.
  const bool mixed = grad_weight && compute == DType::kBFloat16;
  if (mixed) ways.push_back({"float32", dnnl::algorithm::convolution_direct, DType::kFloat32});
  if (mixed || compute == DType::kFloat32) {
    if (MayTakeOneDnnWinograd(lowering, p)) {
      ways.push_back({"winograd", dnnl::algorithm::convolution_winograd, DType::kFloat32});
    }
  }
  return ways;
}

// Returns the way without measurements.
const char* UsualWay(const Lowering& lowering, const ConvProblem& p) {
  if (lowering.compute() == DType::kFloat32) return "winograd";
  const bool many_channels = p.x[1] >= 256 && p.y[1] >= 256;
  if (many_channels && p.weight[2] == 1 && p.geometry.stride.h > 1) return "float32";
  return many_channels ? "winograd" : "direct";
}

// Returns the time to convert a way's inputs from bfloat16 to its type.
double ConversionSeconds(const memory::desc& to) {
  const memory::desc from(to.dims(), memory::data_type::bf16, memory::format_tag::nChw16c);
  const dnnl::reorder::primitive_desc desc(OneDnnEngine(), from, OneDnnEngine(), to);
  const Memory source = Memory::Allocate(static_cast<int64_t>(from.get_size()));
  const Memory target = Memory::Allocate(static_cast<int64_t>(to.get_size()));
  const dnnl::reorder reorder(desc);
  dnnl::stream stream(OneDnnEngine());
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    reorder.execute(stream, {{DNNL_ARG_FROM, memory(from, OneDnnEngine(), source.data())},
                             {DNNL_ARG_TO, memory(to, OneDnnEngine(), target.data())}});
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Returns `make(way)` for the best of `ways` that oneDNN has on this processor: the measured way, else the
// usual way. `Primitive` runs it.
template <typename Primitive, typename Make>
auto Described(const Lowering& lowering, const char* pass, const ConvProblem& p, const std::vector<Way>& ways,
               const Make& make) {
  using Desc = decltype(make(ways[0]));
  std::vector<std::pair<std::string, Desc>> offered = {{ways[0].name, make(ways[0])}};
  const bool small = lowering.algorithms() == Algorithms::kSmallScratch;
  for (size_t i = 1; i < ways.size(); ++i) {
    try {
      const Desc desc = make(ways[i]);
      const auto scratch = static_cast<int64_t>(desc.scratchpad_desc().get_size());
      if (!small || scratch <= kSmallScratchBytes) offered.emplace_back(ways[i].name, desc);
    } catch (const dnnl::error&) {
      // oneDNN has no such primitive for this shape on this processor.
    }
  }
  if (offered.size() == 1) return offered[0].second;
  const auto measure = [&] {
    std::vector<Measured> measured;
    for (const auto& [name, desc] : offered) measured.emplace_back(Primitive(desc), desc);
    // In turns, so that other work on the machine slows all ways.
    for (int i = 0; i < 4; ++i) {
      for (Measured& one : measured) one.Run();
    }
    size_t best = 0;
    double best_seconds = measured[0].best();
    for (size_t i = 1; i < offered.size(); ++i) {
      double seconds = measured[i].best();
      if (lowering.compute() == DType::kBFloat16) {
        for (const int argument : {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST}) {
          seconds += ConversionSeconds(offered[i].second.query_md(dnnl::query::exec_arg_md, argument));
        }
      }
      if (seconds >= best_seconds) continue;
      best = i;
      best_seconds = seconds;
    }
    return offered[best].first;
  };
  const std::string chosen =
      Remembered().Choose(ProblemText(lowering, pass, p), measure).value_or(UsualWay(lowering, p));
  for (const auto& [name, desc] : offered) {
    if (name == chosen) return desc;
  }
  return offered[0].second;
}

// Returns the weights as `wanted`. Grouped weights are always variables in plain layout.
absl::StatusOr<Region> GetWeight(Lowering& lowering, ValueId weight, const ConvProblem& p,
                                 const memory::desc& wanted) {
  if (p.geometry.groups == 1) {
    if (lowering.compute() == DType::kBFloat16) {
      // A free layout becomes the layout of the weight's gradient.
      const Descriptions descriptions(p, lowering.compute(), false);
      const auto grad = descriptions.GradWeight(dnnl::algorithm::convolution_direct);
      TANDEM_RETURN_IF_ERROR(
          lowering.SettleVariable(weight, Layout::OneDnn(grad.diff_weights_desc(), p.weight)));
    }
    return lowering.GetFixed(weight, Layout::OneDnn(wanted, p.weight));
  }
  TANDEM_ASSIGN_OR_RETURN(const Region plain,
                          lowering.GetFixed(weight, Layout::Plain(DType::kFloat32, p.weight)));
  const memory::desc plain_desc = PlainWeightDesc(p);
  if (wanted == plain_desc) return plain;
  const Region region = lowering.Scratch(wanted.get_size());
  const dnnl::reorder::primitive_desc desc(OneDnnEngine(), plain_desc, OneDnnEngine(), wanted);
  lowering.Emit(OneDnnStep("reorder weight", dnnl::reorder(desc), {{DNNL_ARG_FROM, plain_desc, plain}},
                           {{DNNL_ARG_TO, wanted, region}}));
  return region;
}

}  // namespace

absl::Status LowerOneDnnConvForward(Lowering& lowering, const Node& node, const ConvProblem& p) {
  const bool has_bias = node.inputs.size() == 3;
  const auto desc = Described<dnnl::convolution_forward>(
      lowering, "forward", p, WaysOf(lowering, p, false),
      [&](const Way& way) { return Descriptions(p, way.type, has_bias).Forward(way.algorithm); });
  TANDEM_ASSIGN_OR_RETURN(const Region x,
                          lowering.GetFixed(node.inputs[0], Layout::OneDnn(desc.src_desc(), p.x)));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetWeight(lowering, node.inputs[1], p, desc.weights_desc()));
  std::vector<OneDnnArgument> reads = {{DNNL_ARG_SRC, desc.src_desc(), x},
                                       {DNNL_ARG_WEIGHTS, desc.weights_desc(), weight}};
  if (has_bias) {
    TANDEM_ASSIGN_OR_RETURN(
        const Region bias,
        lowering.GetFixed(node.inputs[2], Layout::Plain(DType::kFloat32, Shape({p.weight[0]}))));
    reads.push_back({DNNL_ARG_BIAS, desc.bias_desc(), bias});
  }
  const Region y = lowering.Define(node.outputs[0], Layout::OneDnn(desc.dst_desc(), p.y));
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  lowering.Emit(OneDnnStep(
      absl::StrCat("conv2d onednn ", desc.impl_info_str()), dnnl::convolution_forward(desc), std::move(reads),
      {{DNNL_ARG_DST, desc.dst_desc(), y}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}}));
  return absl::OkStatus();
}

absl::Status LowerOneDnnConvGradInput(Lowering& lowering, const Node& node, const ConvProblem& p) {
  const auto desc = Described<dnnl::convolution_backward_data>(
      lowering, "grad_input", p, WaysOf(lowering, p, false),
      [&](const Way& way) { return Descriptions(p, way.type, false).GradInput(way.algorithm); });
  TANDEM_ASSIGN_OR_RETURN(const Region dy,
                          lowering.GetFixed(node.inputs[0], Layout::OneDnn(desc.diff_dst_desc(), p.y)));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetWeight(lowering, node.inputs[1], p, desc.weights_desc()));
  const Region dx = lowering.Define(node.outputs[0], Layout::OneDnn(desc.diff_src_desc(), p.x));
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  lowering.Emit(OneDnnStep(
      absl::StrCat("conv2d_grad_input onednn ", desc.impl_info_str()), dnnl::convolution_backward_data(desc),
      {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), dy}, {DNNL_ARG_WEIGHTS, desc.weights_desc(), weight}},
      {{DNNL_ARG_DIFF_SRC, desc.diff_src_desc(), dx},
       {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}}));
  return absl::OkStatus();
}

absl::Status LowerOneDnnConvGradWeight(Lowering& lowering, const Node& node, const ConvProblem& p) {
  const bool has_bias = static_cast<const Conv2dGradWeightOp&>(*node.op).has_bias;
  const auto desc = Described<dnnl::convolution_backward_weights>(
      lowering, "grad_weight", p, WaysOf(lowering, p, true),
      [&](const Way& way) { return Descriptions(p, way.type, has_bias).GradWeight(way.algorithm); });
  // The gradient has the parameter's layout, so that the update is a single loop over both.
  Layout wanted = Layout::Plain(DType::kFloat32, p.weight);
  const ValueId parameter = lowering.uses().ParameterOf(node.outputs[0]);
  if (parameter != kNoValue) {
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(parameter));
    wanted = home.layout;
  }
  TANDEM_ASSIGN_OR_RETURN(const Region x,
                          lowering.GetFixed(node.inputs[0], Layout::OneDnn(desc.src_desc(), p.x)));
  TANDEM_ASSIGN_OR_RETURN(const Region dy,
                          lowering.GetFixed(node.inputs[1], Layout::OneDnn(desc.diff_dst_desc(), p.y)));
  const Region dweight = lowering.Define(node.outputs[0], wanted);
  const memory::desc wanted_desc = p.geometry.groups == 1 ? wanted.desc() : PlainWeightDesc(p);
  const bool fits = desc.diff_weights_desc() == wanted_desc;
  const Region made = fits ? dweight : lowering.Scratch(desc.diff_weights_desc().get_size());
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  std::vector<OneDnnArgument> writes = {{DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc(), made},
                                        {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}};
  if (has_bias) {
    const Region dbias = lowering.DefinePlain(node.outputs[1]);
    writes.push_back({DNNL_ARG_DIFF_BIAS, desc.diff_bias_desc(), dbias});
  }
  lowering.Emit(
      OneDnnStep(absl::StrCat("conv2d_grad_weight onednn ", desc.impl_info_str()),
                 dnnl::convolution_backward_weights(desc),
                 {{DNNL_ARG_SRC, desc.src_desc(), x}, {DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), dy}},
                 std::move(writes)));
  if (!fits) {
    const dnnl::reorder::primitive_desc reorder(OneDnnEngine(), desc.diff_weights_desc(), OneDnnEngine(),
                                                wanted_desc);
    lowering.Emit(OneDnnStep("reorder grad_weight", dnnl::reorder(reorder),
                             {{DNNL_ARG_FROM, desc.diff_weights_desc(), made}},
                             {{DNNL_ARG_TO, wanted_desc, dweight}}));
  }
  return absl::OkStatus();
}

}  // namespace tandem::cpu
