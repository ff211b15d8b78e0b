#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backends/cuda/bias.h"
#include "engine/backends/cuda/kernels/bias.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/matmul.h"

namespace tandem::cuda {
namespace {

// [..., last] as [rows, last].
int64_t RowsOf(const Shape& shape) { return shape.elements() / shape[-1]; }

// A product's operands: plain, in the compute type.
Layout FactorLayout(const Lowering& lowering, ValueId id) {
  return Layout::Plain(lowering.compute(), lowering.shape(id));
}

absl::StatusOr<Region> GetFactor(Lowering& lowering, ValueId id) {
  return lowering.Get(id, FactorLayout(lowering, id));
}

// Adds the step that does to the product `c` [m, n] what is asked for beside it.
absl::Status EmitEpilogue(Lowering& lowering, const std::string& name, const GemmSpec& spec, Region c,
                          ValueId bias) {
  Region addend = c;
  std::vector<Region> reads = {c};
  if (spec.bias) {
    TANDEM_ASSIGN_OR_RETURN(addend, lowering.Get(bias, Layout::Plain(DType::kFloat32, lowering.shape(bias))));
    reads.push_back(addend);
  }
  const ChannelSizes sizes = ChannelSizesOf(Shape({spec.m, spec.n}));
  lowering.Emit(
      {.name = name + ": epilogue",
       .reads = std::move(reads),
       .writes = {c},
       .run = [=, type = spec.result_type, has_bias = spec.bias, relu = spec.relu](const RunContext& run) {
         AddChannelBias(sizes, /*channels_last=*/false, type, run.At(c),
                        has_bias ? run.At<const float>(addend) : nullptr, relu, run.At(c), run.stream);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

// Adds the step that computes `asked`; of a product with a bias that is `bias`.
absl::Status EmitGemm(Lowering& lowering, const std::string& name, const GemmSpec& asked, Region a, Region b,
                      ValueId bias, ValueId result) {
  GemmSpec spec = asked;
  absl::StatusOr<std::unique_ptr<Gemm>> planned =
      lowering.device().blas->Plan(spec, lowering.workspace_cap());
  // What the library does not do along with the product, another kernel does to its result.
  const bool apart = absl::IsUnimplemented(planned.status()) && (asked.bias || asked.relu);
  if (apart) {
    spec.bias = false;
    spec.relu = false;
    planned = lowering.device().blas->Plan(spec, lowering.workspace_cap());
  }
  TANDEM_RETURN_IF_ERROR(planned.status());
  const std::shared_ptr<const Gemm> gemm = *std::move(planned);
  std::vector<Region> reads = {a, b};
  Region addend = a;
  if (spec.bias) {
    TANDEM_ASSIGN_OR_RETURN(addend,
                            lowering.Get(bias, Layout::Plain(spec.result_type, lowering.shape(bias))));
    reads.push_back(addend);
  }
  const Region c = lowering.Define(result, Layout::Plain(spec.result_type, lowering.shape(result)));
  std::vector<Region> writes = {c};
  Region workspace = c;
  const bool works = gemm->workspace_bytes() > 0;
  if (works) {
    workspace = lowering.Scratch(gemm->workspace_bytes());
    writes.push_back(workspace);
  }
  const bool has_bias = spec.bias;
  lowering.Emit({.name = name,
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .run = [=](const RunContext& run) {
                   return gemm->Run(run.At(a), run.At(b), run.At(c), has_bias ? run.At(addend) : nullptr,
                                    works ? run.At(workspace) : nullptr, run.stream);
                 }});
  return apart ? EmitEpilogue(lowering, name, asked, c, bias) : absl::OkStatus();
}

absl::Status LowerLinear(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const bool has_bias = node.inputs.size() == 3;
  TANDEM_ASSIGN_OR_RETURN(const Region x, GetFactor(lowering, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region weight, GetFactor(lowering, node.inputs[1]));
  const Node* relu = lowering.OnlyReader(node.outputs[0], "relu");
  if (relu != nullptr) lowering.Absorb(relu->id);
  const GemmSpec spec = {.m = RowsOf(x_shape),
                         .n = lowering.shape(node.inputs[1])[0],
                         .k = x_shape[-1],
                         .transpose_b = true,
                         .type = lowering.compute(),
                         .result_type = lowering.compute(),
                         .bias = has_bias,
                         .relu = relu != nullptr};
  return EmitGemm(lowering, relu != nullptr ? "linear + relu" : "linear", spec, x, weight,
                  has_bias ? node.inputs[2] : kNoValue, relu != nullptr ? relu->outputs[0] : node.outputs[0]);
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
  return EmitGemm(lowering, "linear_grad_input", spec, dy, weight, kNoValue, node.outputs[0]);
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
  TANDEM_RETURN_IF_ERROR(EmitGemm(lowering, "linear_grad_weight", spec, dy, x, kNoValue, node.outputs[0]));
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
  return EmitGemm(lowering, "matmul", spec, a, b, kNoValue, node.outputs[0]);
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
