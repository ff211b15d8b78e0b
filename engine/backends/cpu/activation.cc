#include "engine/backends/cpu/activation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "engine/backends/cpu/onednn.h"
#include "engine/backends/cpu/onednn_step.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/activation.h"

namespace tandem::cpu {
namespace {

// From this threshold on, softplus equals x in single precision.
constexpr double kLargeThreshold = 16;

// Returns oneDNN's name of a function, and its constant, or undef for the functions of LowerLoop. SELU is an
// ELU that EmitSeluScale scales.
std::pair<dnnl::algorithm, float> AlgorithmOf(const ActivationRule& rule) {
  const float alpha = static_cast<float>(rule.alpha);
  switch (rule.function) {
    case ActivationFunction::kLeakyRelu:
      return {dnnl::algorithm::eltwise_relu, alpha};
    case ActivationFunction::kElu:
      return {dnnl::algorithm::eltwise_elu, alpha};
    case ActivationFunction::kGelu:
      // Slower in oneDNN.
      break;
    case ActivationFunction::kGeluTanh:
      return {dnnl::algorithm::eltwise_gelu_tanh, 0.0f};
    case ActivationFunction::kSigmoid:
      return {dnnl::algorithm::eltwise_logistic, 0.0f};
    case ActivationFunction::kTanh:
      return {dnnl::algorithm::eltwise_tanh, 0.0f};
    case ActivationFunction::kSilu:
      return {dnnl::algorithm::eltwise_swish, 1.0f};
    case ActivationFunction::kSoftplus:
      if (rule.alpha == 1 && rule.threshold >= kLargeThreshold) {
        return {dnnl::algorithm::eltwise_soft_relu, 0.0f};
      }
      break;
    case ActivationFunction::kHardSwish:
      return {dnnl::algorithm::eltwise_hardswish, 0.0f};
    case ActivationFunction::kSelu:
      return {dnnl::algorithm::eltwise_elu, static_cast<float>(kSeluAlpha)};
  }
  return {dnnl::algorithm::undef, 0.0f};
}

// Returns oneDNN's view of a tensor: its own layouts with zero padding, all other layouts as a row.
dnnl::memory::desc DescOf(const Layout& layout) {
  if (layout.kind() == Layout::Kind::kOneDnn) return layout.desc();
  return PlainDesc(DType::kFloat32, Shape({std::max<int64_t>(1, layout.elements())}));
}

dnnl::eltwise_forward::primitive_desc ForwardDesc(const ActivationRule& rule,
                                                  const dnnl::memory::desc& desc) {
  const auto [algorithm, number] = AlgorithmOf(rule);
  return {{dnnl::prop_kind::forward_training, algorithm, desc, number}, OneDnnEngine()};
}

// Scales y, the result of an ELU or of its gradient, in place.
void EmitSeluScale(Lowering& lowering, Region y, int64_t elements) {
  lowering.Emit({.name = "selu scale", .reads = {y}, .writes = {y}, .run = [=](const RunContext& run) {
                   run.team->For(elements, [&](int64_t begin, int64_t end) {
                     float* numbers = run.At<float>(y);
                     run.kernels->scale(numbers, static_cast<float>(kSeluScale), numbers, begin, end);
                   });
                   return absl::OkStatus();
                 }});
}

void Softplus(const ActivationRule& rule, const float* x, float* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const double scaled = rule.alpha * x[i];
    y[i] = static_cast<float>(scaled > rule.threshold ? x[i] : std::log1p(std::exp(scaled)) / rule.alpha);
  }
}

void SoftplusGrad(const ActivationRule& rule, const float* x, const float* dy, float* dx, int64_t begin,
                  int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const double scaled = rule.alpha * x[i];
    dx[i] = static_cast<float>(scaled > rule.threshold ? 1 : 1 / (1 + std::exp(-scaled))) * dy[i];
  }
}

// Computes a GELU or softplus, or its gradient, by a loop over all elements.
absl::Status LowerLoop(Lowering& lowering, const Node& node, const ActivationRule& rule,
                       const Layout& layout) {
  const bool is_grad = node.inputs.size() == 2;
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], layout));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs.back(), layout));
  const Region y = lowering.Define(node.outputs[0], layout);
  const bool gelu = rule.function == ActivationFunction::kGelu;
  std::vector<Region> reads = {x};
  if (is_grad) reads.push_back(dy);
  const int replaced = is_grad ? 1 : 0;
  lowering.Emit({.name = absl::StrCat(node.op->kind(), " ", rule.ToString()),
                 .reads = std::move(reads),
                 .writes = {y},
                 .in_place = {{0, replaced}},
                 .run = [=, elements = layout.elements()](const RunContext& run) {
                   const float* from = run.At<const float>(x);
                   const float* grad = run.At<const float>(dy);
                   float* to = run.At<float>(y);
                   run.team->For(elements, [&](int64_t begin, int64_t end) {
                     if (gelu && is_grad) {
                       run.kernels->gelu_grad(from, grad, to, begin, end);
                     } else if (gelu) {
                       run.kernels->gelu(from, to, begin, end);
                     } else if (is_grad) {
                       SoftplusGrad(rule, from, grad, to, begin, end);
                     } else {
                       Softplus(rule, from, to, begin, end);
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerActivation(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const ActivationRule& rule = static_cast<const ActivationOp&>(*node.op).rule;
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Layout layout = home.layout;
  if (AlgorithmOf(rule).first == dnnl::algorithm::undef) {
    // A loop reaches the padding of oneDNN's layouts, which must stay 0, and softplus(0) is not 0.
    const bool is_padded =
        rule.function == ActivationFunction::kSoftplus && layout.kind() == Layout::Kind::kOneDnn;
    return LowerLoop(lowering, node, rule,
                     is_padded ? Float32Layout(lowering.shape(node.outputs[0])) : layout);
  }
  const dnnl::memory::desc desc = DescOf(layout);
  const auto forward = ForwardDesc(rule, desc);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetFixed(node.inputs[0], layout));
  const Region y = lowering.Define(node.outputs[0], layout);
  lowering.Emit(OneDnnStep(absl::StrCat("activation ", rule.ToString()), dnnl::eltwise_forward(forward),
                           {{DNNL_ARG_SRC, desc, x}}, {{DNNL_ARG_DST, desc, y}}));
  if (rule.function == ActivationFunction::kSelu) EmitSeluScale(lowering, y, layout.elements());
  return absl::OkStatus();
}

absl::Status LowerActivationGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const ActivationRule& rule = static_cast<const ActivationGradOp&>(*node.op).rule;
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Layout layout = home.layout;
  const auto [algorithm, number] = AlgorithmOf(rule);
  if (algorithm == dnnl::algorithm::undef) return LowerLoop(lowering, node, rule, layout);
  const dnnl::memory::desc desc = DescOf(layout);
  const dnnl::eltwise_backward::primitive_desc backward({algorithm, desc, desc, number}, OneDnnEngine(),
                                                        ForwardDesc(rule, desc));
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetFixed(node.inputs[0], layout));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.GetFixed(node.inputs[1], layout));
  const Region dx = lowering.Define(node.outputs[0], layout);
  Step step =
      OneDnnStep(absl::StrCat("activation_grad ", rule.ToString()), dnnl::eltwise_backward(backward),
                 {{DNNL_ARG_SRC, desc, x}, {DNNL_ARG_DIFF_DST, desc, dy}}, {{DNNL_ARG_DIFF_SRC, desc, dx}});
  step.in_place = {{0, 1}};
  lowering.Emit(std::move(step));
  if (rule.function == ActivationFunction::kSelu) EmitSeluScale(lowering, dx, layout.elements());
  return absl::OkStatus();
}

}  // namespace tandem::cpu
