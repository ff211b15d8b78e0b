#include "engine/graph/ops/gradient_factors.h"

#include "engine/backends/cuda/kernels/gradient_factors.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

absl::Status LowerOrthonormalize(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  const Region y = lowering.DefinePlain(node.outputs[0]);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Region basis = lowering.Scratch(shape.elements() * static_cast<int64_t>(sizeof(double)));
  lowering.Emit({.name = "orthonormalize",
                 .reads = {x},
                 .writes = {y, basis},
                 .run = [=, rows = shape[0], columns = shape[1]](const RunContext& run) {
                   Orthonormalize(run.At<const float>(x), rows, columns, OrthonormalizeOp::kDependent,
                                  run.At<double>(basis), run.At<float>(y), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

// Returns the place of a variable, which must be row-major.
absl::StatusOr<Region> PlainHome(Lowering& lowering, ValueId variable) {
  const Layout plain = Layout::Plain(DType::kFloat32, lowering.shape(variable));
  TANDEM_RETURN_IF_ERROR(lowering.SettleVariable(variable, plain));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(variable));
  if (home.layout == plain) return home.region;
  return absl::InternalError("restore_gradient with a factor that is not row-major");
}

absl::Status LowerRestoreGradient(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const RestoreGradientOp&>(*node.op);
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.outputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region basis, lowering.GetPlain(node.inputs[RestoreGradientOp::kBasis]));
  TANDEM_ASSIGN_OR_RETURN(const Region other, lowering.GetPlain(node.inputs[RestoreGradientOp::kOther]));
  TANDEM_ASSIGN_OR_RETURN(const Region start, PlainHome(lowering, node.inputs[RestoreGradientOp::kStart]));
  const Region grad = lowering.DefinePlain(node.outputs[0]);
  GradientFactors factors;
  factors.rows = lowering.shape(node.outputs[0])[0];
  factors.columns = lowering.shape(node.outputs[0])[1];
  factors.rank = lowering.shape(node.inputs[RestoreGradientOp::kBasis])[1];
  factors.tall = op.tall;
  lowering.Emit({.name = "restore_gradient",
                 .reads = {basis, other},
                 .writes = {grad, start},
                 .run = [=](const RunContext& run) {
                   GradientFactors own = factors;
                   own.basis = run.At<const float>(basis);
                   own.other = run.At<const float>(other);
                   RestoreGradient(own, run.At<float>(start), run.At<float>(grad), run.stream);
                   return absl::OkStatus();
                 }});
  lowering.Changed(node.inputs[RestoreGradientOp::kStart]);
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> GradientFactorOps() {
  static constexpr Offered kOps[] = {
      {"orthonormalize", LowerOrthonormalize},
      {"restore_gradient", LowerRestoreGradient},
  };
  return kOps;
}

}  // namespace tandem::cuda
