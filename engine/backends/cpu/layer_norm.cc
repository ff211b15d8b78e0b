#include "engine/backends/cpu/layer_norm.h"

#include "dnnl.hpp"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/layer_norm.h"

namespace tandem::cpu {
namespace {

dnnl::normalization_flags Flags() {
  return dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
}

// Returns oneDNN's view of the tensor: [rows, normalised elements].
dnnl::memory::desc RowsDesc(const Shape& x, const Shape& weight) {
  return PlainDesc(DType::kFloat32, Shape({x.elements() / weight.elements(), weight.elements()}));
}

dnnl::layer_normalization_forward::primitive_desc ForwardDesc(const dnnl::memory::desc& rows,
                                                              double epsilon) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return {{dnnl::prop_kind::forward_training, rows, static_cast<float>(epsilon), Flags()},
          attributes,
          OneDnnEngine()};
}

// Returns plain memory that is not an input's.
absl::StatusOr<Region> Fixed(Lowering& lowering, ValueId id) {
  return lowering.GetFixed(id, Float32Layout(lowering.shape(id)));
}

}  // namespace

absl::Status LowerLayerNorm(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& weight_shape = lowering.shape(node.inputs[1]);
  const dnnl::memory::desc rows = RowsDesc(lowering.shape(node.inputs[0]), weight_shape);
  const auto desc = ForwardDesc(rows, static_cast<const LayerNormOp&>(*node.op).epsilon);
  const dnnl::memory::desc columns = PlainDesc(DType::kFloat32, Shape({weight_shape.elements()}));
  TANDEM_ASSIGN_OR_RETURN(const Region x, Fixed(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, Fixed(lowering, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region bias, Fixed(lowering, node.inputs[2]));
  const Region y = lowering.DefinePlain(node.outputs[0]);
  const Region mean = lowering.DefinePlain(node.outputs[1]);
  const Region variance = lowering.DefinePlain(node.outputs[2]);
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  Step step = OneDnnStep(
      "layer_norm", dnnl::layer_normalization_forward(desc),
      {{DNNL_ARG_SRC, rows, x}, {DNNL_ARG_SCALE, columns, weight}, {DNNL_ARG_SHIFT, columns, bias}},
      {{DNNL_ARG_DST, rows, y},
       {DNNL_ARG_MEAN, desc.mean_desc(), mean},
       {DNNL_ARG_VARIANCE, desc.variance_desc(), variance},
       {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}});
  lowering.Emit(std::move(step));
  return absl::OkStatus();
}

absl::Status LowerLayerNormGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const float epsilon = static_cast<float>(static_cast<const LayerNormGradOp&>(*node.op).epsilon);
  const Shape& weight_shape = lowering.shape(node.inputs[2]);
  const dnnl::memory::desc rows = RowsDesc(lowering.shape(node.inputs[0]), weight_shape);
  const auto hint = ForwardDesc(rows, epsilon);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::layer_normalization_backward::primitive_desc desc(
      {dnnl::prop_kind::backward, rows, rows, epsilon, Flags()}, attributes, OneDnnEngine(), hint);
  const dnnl::memory::desc columns = PlainDesc(DType::kFloat32, Shape({weight_shape.elements()}));
  TANDEM_ASSIGN_OR_RETURN(const Region x, Fixed(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_y, Fixed(lowering, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, Fixed(lowering, node.inputs[2]));
  TANDEM_ASSIGN_OR_RETURN(const Region mean, Fixed(lowering, node.inputs[3]));
  TANDEM_ASSIGN_OR_RETURN(const Region variance, Fixed(lowering, node.inputs[4]));
  const Region grad_x = lowering.DefinePlain(node.outputs[0]);
  const Region grad_weight = lowering.DefinePlain(node.outputs[1]);
  const Region grad_bias = lowering.DefinePlain(node.outputs[2]);
  const Region scratch = lowering.Scratch(desc.scratchpad_desc().get_size());
  Step step = OneDnnStep("layer_norm_grad", dnnl::layer_normalization_backward(desc),
                         {{DNNL_ARG_SRC, rows, x},
                          {DNNL_ARG_DIFF_DST, rows, grad_y},
                          {DNNL_ARG_SCALE, columns, weight},
                          // oneDNN requires a shift and does not read it.
                          {DNNL_ARG_SHIFT, columns, weight},
                          {DNNL_ARG_MEAN, desc.mean_desc(), mean},
                          {DNNL_ARG_VARIANCE, desc.variance_desc(), variance}},
                         {{DNNL_ARG_DIFF_SRC, rows, grad_x},
                          {DNNL_ARG_DIFF_SCALE, columns, grad_weight},
                          {DNNL_ARG_DIFF_SHIFT, columns, grad_bias},
                          {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), scratch}});
  lowering.Emit(std::move(step));
  return absl::OkStatus();
}

}  // namespace tandem::cpu
