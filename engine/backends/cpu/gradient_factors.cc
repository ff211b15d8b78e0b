#include "engine/backends/cpu/gradient_factors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/gradient_factors.h"
#include "engine/graph/ops/orthonormal_sign.h"

namespace tandem::cpu {
namespace {

double DotProduct(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Makes the column `k` of `basis` orthogonal to the columns before it, and of length 1. Columns are
// contiguous. Returns false if it depends on them.
bool MakeOrthonormal(double* basis, int64_t k, int64_t rows) {
  double* const column = basis + k * rows;
  const double length = std::sqrt(DotProduct(column, column, rows));
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t j = 0; j < k; ++j) {
      const double* const earlier = basis + j * rows;
      const double part = DotProduct(column, earlier, rows);
      for (int64_t i = 0; i < rows; ++i) column[i] -= part * earlier[i];
    }
  }
  const double left = std::sqrt(DotProduct(column, column, rows));
  if (left <= OrthonormalizeOp::kDependent * length) return false;
  for (int64_t i = 0; i < rows; ++i) column[i] /= left;
  return true;
}

// x and y are [rows, columns], `basis` has as many elements.
void Orthonormalize(const float* x, int64_t rows, int64_t columns, double* basis, float* y) {
  for (int64_t k = 0; k < columns; ++k) {
    double* const column = basis + k * rows;
    for (int64_t i = 0; i < rows; ++i) column[i] = x[i * columns + k];
    if (!MakeOrthonormal(basis, k, rows)) {
      for (int64_t i = 0; i < rows; ++i) column[i] = OrthonormalSign(i, k);
      if (!MakeOrthonormal(basis, k, rows)) std::fill_n(column, rows, 0.0);
    }
    for (int64_t i = 0; i < rows; ++i) y[i * columns + k] = static_cast<float>(column[i]);
  }
}

}  // namespace

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
                   Orthonormalize(run.At<const float>(x), rows, columns, run.At<double>(basis),
                                  run.At<float>(y));
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerRestoreGradient(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const RestoreGradientOp&>(*node.op);
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.outputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region basis, lowering.GetPlain(node.inputs[RestoreGradientOp::kBasis]));
  TANDEM_ASSIGN_OR_RETURN(const Region other, lowering.GetPlain(node.inputs[RestoreGradientOp::kOther]));
  TANDEM_RETURN_IF_ERROR(lowering.GetPlain(node.inputs[RestoreGradientOp::kStart]).status());
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[RestoreGradientOp::kStart]));
  if (!home.layout.plain()) {
    return absl::InternalError("cpu: restore_gradient with a factor that is not row-major");
  }
  const Region start = home.region;
  const Region grad = lowering.DefinePlain(node.outputs[0]);
  const Shape& shape = lowering.shape(node.outputs[0]);
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  const int64_t rank = lowering.shape(node.inputs[RestoreGradientOp::kBasis])[1];
  const Region turned = lowering.Scratch(columns * rank * static_cast<int64_t>(sizeof(float)));
  lowering.Emit({.name = "restore_gradient",
                 .reads = {basis, other},
                 .writes = {grad, start, turned},
                 .run = [=, tall = op.tall](const RunContext& run) {
                   const float* const left = run.At<const float>(tall ? other : basis);
                   const float* const right = run.At<const float>(tall ? basis : other);
                   float* const right_turned = run.At<float>(turned);
                   for (int64_t j = 0; j < columns; ++j) {
                     for (int64_t k = 0; k < rank; ++k) right_turned[k * columns + j] = right[j * rank + k];
                   }
                   run.team->For(rows, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       float* const y = run.At<float>(grad) + i * columns;
                       std::fill_n(y, columns, 0.0f);
                       for (int64_t k = 0; k < rank; ++k) {
                         const float factor = left[i * rank + k];
                         const float* const row = right_turned + k * columns;
                         for (int64_t j = 0; j < columns; ++j) y[j] += factor * row[j];
                       }
                     }
                   });
                   const float* const next = run.At<const float>(other);
                   std::copy_n(next, (tall ? rows : columns) * rank, run.At<float>(start));
                   return absl::OkStatus();
                 }});
  lowering.Changed(node.inputs[RestoreGradientOp::kStart]);
  return absl::OkStatus();
}

}  // namespace tandem::cpu
