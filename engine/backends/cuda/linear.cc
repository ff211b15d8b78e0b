#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/bias.h"
#include "engine/backends/cuda/offered.h"
#include "engine/backends/cuda/product.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/matmul.h"

namespace tandem::cuda {
namespace {

// Returns the rows of [..., last].
int64_t RowsOf(const Shape& shape) { return shape.elements() / shape[-1]; }

// Returns the layout of a product's operands: plain, in the compute type.
Layout FactorLayout(const Lowering& lowering, ValueId id) {
  return Layout::Plain(lowering.compute(), lowering.shape(id));
}

absl::StatusOr<Region> GetFactor(Lowering& lowering, ValueId id) {
  return lowering.Get(id, FactorLayout(lowering, id));
}

absl::Status LowerLinear(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const bool has_bias = node.inputs.size() == 3;
  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, node.inputs[1]));
  const Node* relu = lowering.ReluAfter(node);
  if (relu != nullptr) lowering.Absorb(relu->id);
  const GemmSpec spec = {.m = RowsOf(x_shape),
                         .n = lowering.shape(node.inputs[1])[0],
                         .k = x_shape[-1],
                         .transpose_b = true,
                         .type = lowering.compute(),
                         .result_type = lowering.compute(),
                         .bias = has_bias};
  return EmitProduct(lowering, relu != nullptr ? "linear + relu" : "linear", spec, x, weight,
                     has_bias ? node.inputs[2] : kNoValue, relu != nullptr,
                     relu != nullptr ? relu->outputs[0] : node.outputs[0]);
}

absl::Status LowerLinearGradInput(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& dy_shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Region dy, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, node.inputs[1]));
  const GemmSpec spec = {.m = RowsOf(dy_shape),
                         .n = lowering.shape(node.inputs[1])[1],
                         .k = dy_shape[-1],
                         .type = lowering.compute(),
                         .result_type = lowering.compute()};
  return EmitProduct(lowering, "linear_grad_input", spec, dy, weight, kNoValue, false, node.outputs[0]);
}

absl::Status LowerLinearGradWeight(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& dy_shape = lowering.shape(node.inputs[1]);
  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region dy, GetFactor(lowering, node.inputs[1]));
  const int64_t rows = RowsOf(x_shape);
  const GemmSpec spec = {.m = dy_shape[-1],
                         .n = x_shape[-1],
                         .k = rows,
                         .transpose_a = true,
                         .type = lowering.compute(),
                         .result_type = DType::kFloat32};
  TANDEM_RETURN_IF_ERROR(
      EmitProduct(lowering, "linear_grad_weight", spec, dy, x, kNoValue, false, node.outputs[0]));
  if (!static_cast<const LinearGradWeightOp&>(*node.op).has_bias) return absl::OkStatus();
  const Layout as_rows = Layout::Plain(lowering.compute(), Shape({rows, dy_shape[-1]}));
  return EmitGradBias(lowering, dy_shape.rank() == 2 ? node.inputs[1] : kNoValue, {dy, as_rows},
                      node.outputs[1]);
}

absl::Status LowerMatmul(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const MatmulOp&>(*node.op);
  const Shape& a_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Region a, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region b, GetFactor(lowering, node.inputs[1]));
  const int64_t m = y_shape[y_shape.rank() - 2];
  const int64_t n = y_shape[-1];
  const GemmSpec spec = {.m = m,
                         .n = n,
                         .k = op.transpose_a ? a_shape[a_shape.rank() - 2] : a_shape[-1],
                         .transpose_a = op.transpose_a,
                         .transpose_b = op.transpose_b,
                         .batch = y_shape.elements() / (m * n),
                         .type = lowering.compute(),
                         .result_type = lowering.compute()};
  return EmitProduct(lowering, "matmul", spec, a, b, kNoValue, false, node.outputs[0]);
}

}  // namespace

absl::Span<const Offered> LinearOps() {
  static constexpr Offered kOps[] = {
      {"linear", LowerLinear},
      {"linear_grad_input", LowerLinearGradInput},
      {"linear_grad_weight", LowerLinearGradWeight},
      {"matmul", LowerMatmul},
  };
  return kOps;
}

}  // namespace tandem::cuda
