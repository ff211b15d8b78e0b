#include "engine/graph/ops/softmax.h"

#include <string>

#include "engine/backends/cuda/kernels/softmax.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/attention.h"

namespace tandem::cuda {
namespace {

// Returns the lines along `axis`, in the tensor's layout.
SoftmaxLines LinesOf(const Layout& layout, int axis) {
  const Shape& shape = layout.shape();
  SoftmaxLines lines = {
      .count = shape.elements() / shape[axis], .extent = shape[axis], .type = layout.dtype()};
  const bool along_channels = layout.channels_last() && axis == 1;
  for (int i = axis + 1; i < shape.rank() && !along_channels; ++i) lines.stride *= shape[i];
  if (layout.channels_last() && axis > 1) lines.stride *= shape[1];
  return lines;
}

absl::Status EmitForward(Lowering& lowering, const Node& node, const Layout& layout, int axis,
                         const SoftmaxKind& kind) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const SoftmaxLines lines = LinesOf(layout, axis);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], layout));
  const Region y = lowering.Define(node.outputs[0], layout);
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = {x},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   Softmax(lines, kind, run.At(x), run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status EmitGrad(Lowering& lowering, const Node& node, const Layout& layout, int axis,
                      const SoftmaxKind& kind) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const SoftmaxLines lines = LinesOf(layout, axis);
  TANDEM_ASSIGN_OR_RETURN(const Region y, lowering.Get(node.inputs[0], layout));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[1], layout));
  const Region dx = lowering.Define(node.outputs[0], layout);
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = {y, dy},
                 .writes = {dx},
                 .in_place = {{0, 1}, {0, 0}},
                 .run = [=](const RunContext& run) {
                   SoftmaxGrad(lines, kind, run.At(y), run.At(dy), run.At(dx), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

// In the layout and the type of the first input.
absl::Status LowerSoftmax(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const SoftmaxOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  return EmitForward(lowering, node, home.layout, op.axis, {.log = op.log});
}

absl::Status LowerSoftmaxGrad(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const SoftmaxGradOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  return EmitGrad(lowering, node, home.layout, op.axis, {.log = op.log});
}

// Plain, so that the keys of a query are contiguous.
absl::StatusOr<Layout> ScoresLayout(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  return Layout::Plain(home.layout.dtype(), lowering.shape(node.inputs[0]));
}

SoftmaxKind KindOf(const Shape& scores, double scale, bool causal) {
  return {.scale = static_cast<float>(scale), .queries = causal ? scores[scores.rank() - 2] : 0};
}

absl::Status LowerAttentionSoftmax(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const AttentionSoftmaxOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Layout layout, ScoresLayout(lowering, node));
  return EmitForward(lowering, node, layout, layout.shape().rank() - 1,
                     KindOf(layout.shape(), op.scale, op.causal));
}

absl::Status LowerAttentionSoftmaxGrad(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const AttentionSoftmaxGradOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Layout layout, ScoresLayout(lowering, node));
  return EmitGrad(lowering, node, layout, layout.shape().rank() - 1,
                  KindOf(layout.shape(), op.scale, op.causal));
}

}  // namespace

absl::Span<const Offered> SoftmaxOps() {
  static constexpr Offered kOps[] = {
      {"attention_softmax", LowerAttentionSoftmax},
      {"attention_softmax_grad", LowerAttentionSoftmaxGrad},
      {"softmax", LowerSoftmax},
      {"softmax_grad", LowerSoftmaxGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
