#include <utility>

#include "dnnl.hpp"
#include "engine/backends/cpu/convolution.h"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {
namespace {

using dnnl::memory;

memory::desc AnyDesc(const memory::dims& dims) {
  return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
}

// OIHW, or GOIHW where there are groups.
memory::dims WeightDims(const ConvProblem& p) {
  if (p.geometry.groups == 1) return Dims(p.weight);
  const int64_t groups = p.geometry.groups;
  return {groups, p.weight[0] / groups, p.weight[1], p.weight[2], p.weight[3]};
}

memory::desc PlainWeightDesc(const ConvProblem& p) {
  const memory::dims dims = WeightDims(p);
  return PlainDesc(DType::kFloat32, Shape(std::vector<int64_t>(dims.begin(), dims.end())));
}

// Descriptions of a convolution's three primitives, all in the formats that oneDNN likes best, but for the
// weights, which lie as `weight` says.
struct Descriptions {
  memory::desc src;
  memory::desc weight;
  memory::desc bias;
  memory::desc dst;
  memory::dims strides;
  memory::dims dilations;
  memory::dims padding;
  dnnl::primitive_attr attributes;

  Descriptions(const ConvProblem& p, const memory::desc& weight_desc, bool has_bias)
      : src(AnyDesc(Dims(p.x))),
        weight(weight_desc),
        dst(AnyDesc(Dims(p.y))),
        strides{p.geometry.stride.h, p.geometry.stride.w},
        dilations{p.geometry.dilation.h - 1, p.geometry.dilation.w - 1},
        padding{p.geometry.padding.h, p.geometry.padding.w} {
    if (has_bias) bias = PlainDesc(DType::kFloat32, Shape({p.y[1]}));
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  dnnl::convolution_forward::primitive_desc Forward() const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    if (bias.is_zero()) {
      return {{kind, algorithm, src, weight, dst, strides, dilations, padding, padding},
              attributes,
              OneDnnEngine()};
    }
    return {{kind, algorithm, src, weight, bias, dst, strides, dilations, padding, padding},
            attributes,
            OneDnnEngine()};
  }
  dnnl::convolution_backward_data::primitive_desc GradInput() const {
    return {{dnnl::algorithm::convolution_direct, src, weight, dst, strides, dilations, padding, padding},
            attributes,
            OneDnnEngine(),
            Forward()};
  }
  dnnl::convolution_backward_weights::primitive_desc GradWeight() const {
    const auto algorithm = dnnl::algorithm::convolution_direct;
    if (bias.is_zero()) {
      return {{algorithm, src, weight, dst, strides, dilations, padding, padding},
              attributes,
              OneDnnEngine(),
              Forward()};
    }
    return {{algorithm, src, weight, bias, dst, strides, dilations, padding, padding},
            attributes,
            OneDnnEngine(),
            Forward()};
  }
};

// The weights as `wanted`. Grouped ones are a variable in plain layout always.
absl::StatusOr<Region> GetWeight(Lowering& lowering, ValueId weight, const ConvProblem& p,
                                 const memory::desc& wanted) {
  if (p.geometry.groups == 1) return lowering.GetFixed(weight, Layout::OneDnn(wanted, p.weight));
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
  const auto desc = Descriptions(p, AnyDesc(WeightDims(p)), has_bias).Forward();
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
  const auto desc = Descriptions(p, AnyDesc(WeightDims(p)), false).GradInput();
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
  const auto desc = Descriptions(p, AnyDesc(WeightDims(p)), has_bias).GradWeight();
  // The gradient has the parameter's layout, so that the update is one loop over both.
  Layout wanted = Layout::Plain(DType::kFloat32, p.weight);
  const ValueId parameter = lowering.ParameterOf(node.outputs[0]);
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
    const Region dbias =
        lowering.Define(node.outputs[1], Layout::Plain(DType::kFloat32, Shape({p.weight[0]})));
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
