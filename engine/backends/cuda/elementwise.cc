#include "engine/backends/cuda/elementwise.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/batch_norm.h"
#include "engine/backends/cuda/kernels/elementwise.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"

namespace tandem::cuda {
namespace {

absl::Status LowerLoop(Lowering& lowering, const Node& node, Elementwise what, float factor = 1) {
  return LowerPairs(lowering, node,
                    [=](int64_t elements, DType type, const void* a, const void* b, void* y, Stream stream) {
                      RunElementwise(what, elements, type, a, b, factor, y, stream);
                    });
}

absl::Status LowerRelu(Lowering& lowering, const Node& node) {
  return LowerLoop(lowering, node, Elementwise::kRelu);
}

absl::Status LowerReluGrad(Lowering& lowering, const Node& node) {
  if (const BackwardGroup* group = lowering.fusions().Backward(node); group != nullptr) {
    return LowerBackwardGroup(lowering, *group);
  }
  return LowerLoop(lowering, node, Elementwise::kReluGrad);
}

absl::Status LowerAdd(Lowering& lowering, const Node& node) {
  return LowerLoop(lowering, node, Elementwise::kAdd);
}

absl::Status LowerMultiply(Lowering& lowering, const Node& node) {
  return LowerLoop(lowering, node, Elementwise::kMultiply);
}

// Scales a float64 number, such as the learning rate, or a tensor.
absl::Status LowerScale(Lowering& lowering, const Node& node) {
  const double factor = static_cast<const ScaleOp&>(*node.op).factor;
  const bool is_number =
      lowering.value(node.inputs[0]).dtype == DType::kFloat64 && lowering.shape(node.inputs[0]).rank() == 0;
  if (!is_number) return LowerLoop(lowering, node, Elementwise::kScale, static_cast<float>(factor));
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  const Region y = lowering.Define(node.outputs[0], Layout::Plain(DType::kFloat64, Shape()));
  lowering.Emit({.name = "scale", .reads = {x}, .writes = {y}, .run = [=](const RunContext& run) {
                   ScaleNumber(run.At<double>(x), factor, run.At<double>(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerDivide(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region divisor, lowering.GetPlain(node.inputs[1]));
  const Region x = home.region;
  const Region y = lowering.Define(node.outputs[0], home.layout);
  lowering.Emit({.name = "divide",
                 .reads = {x, divisor},
                 .writes = {y},
                 .in_place = {{0, 0}},
                 .run = [=, layout = home.layout,
                         factor = static_cast<const DivideOp&>(*node.op).factor](const RunContext& run) {
                   DivideByNumber(layout.elements(), layout.dtype(), run.At(x), static_cast<float>(factor),
                                  run.At<const float>(divisor), run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerReshape(Lowering& lowering, const Node& node) {
  const ValueId from = node.inputs[0];
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(from));
  const Layout plain = Layout::Plain(home.layout.dtype(), lowering.shape(from));
  TANDEM_ASSIGN_OR_RETURN(const Region region, lowering.Get(from, plain));
  const Layout layout = Layout::Plain(home.layout.dtype(), lowering.shape(node.outputs[0]));
  // The result keeps the variable's value, even if a later node changes the variable.
  if (lowering.uses().ChangesAfter(from, node.id) &&
      lowering.buffers()[region.buffer].source == Buffer::Source::kVariable) {
    const Region copy = lowering.Define(node.outputs[0], layout);
    const int64_t bytes = layout.bytes();
    lowering.Emit({.name = "reshape", .reads = {region}, .writes = {copy}, .run = [=](const RunContext& run) {
                     return Copy(run.At(copy), run.At(region), bytes, run.stream);
                   }});
    return absl::OkStatus();
  }
  lowering.Alias(node.outputs[0], {region, layout});
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerPairs(Lowering& lowering, const Node& node, const PairsKernel& kernel) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const bool two = node.inputs.size() > 1;
  TANDEM_ASSIGN_OR_RETURN(const Place first, lowering.HomeAsMade(node.inputs[0]));
  DType type = first.layout.dtype();
  if (two) {
    TANDEM_ASSIGN_OR_RETURN(const Place second, lowering.HomeAsMade(node.inputs[1]));
    if (second.layout.dtype() != type) type = DType::kFloat32;
  }
  const Layout layout = first.layout.WithType(type);
  TANDEM_ASSIGN_OR_RETURN(const Region a, lowering.Get(node.inputs[0], layout));
  Region b = a;
  std::vector<Region> reads = {a};
  std::vector<std::pair<int, int>> in_place = {{0, 0}};
  if (two) {
    TANDEM_ASSIGN_OR_RETURN(b, lowering.Get(node.inputs[1], layout));
    reads.push_back(b);
    in_place.push_back({0, 1});
  }
  const Region y = lowering.Define(node.outputs[0], layout);
  const int64_t elements = layout.elements();
  lowering.Emit({.name = std::string(node.op->kind()),
                 .reads = std::move(reads),
                 .writes = {y},
                 .in_place = std::move(in_place),
                 .run = [=](const RunContext& run) {
                   kernel(elements, type, run.At(a), run.At(b), run.At(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Span<const Offered> ElementwiseOps() {
  static constexpr Offered kOps[] = {
      {"add", LowerAdd},     {"divide", LowerDivide},      {"multiply", LowerMultiply},
      {"relu", LowerRelu},   {"relu_grad", LowerReluGrad}, {"reshape", LowerReshape},
      {"scale", LowerScale},
  };
  return kOps;
}

}  // namespace tandem::cuda
