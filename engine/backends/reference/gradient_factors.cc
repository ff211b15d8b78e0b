#include "engine/graph/ops/gradient_factors.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/backends/reference/kernel.h"
#include "engine/graph/ops/orthonormal_sign.h"

namespace tandem::reference {
namespace {

using Column = std::vector<double>;

double Product(const Column& a, const Column& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Makes the column orthogonal to `basis`, and of length 1. Returns false if it depends on `basis`.
bool AddTo(const std::vector<Column>& basis, Column& column) {
  const double length = std::sqrt(Product(column, column));
  for (int pass = 0; pass < 2; ++pass) {
    for (const Column& earlier : basis) {
      const double part = Product(column, earlier);
      for (size_t i = 0; i < column.size(); ++i) column[i] -= part * earlier[i];
    }
  }
  const double left = std::sqrt(Product(column, column));
  if (left <= OrthonormalizeOp::kDependent * length) return false;
  for (double& number : column) number /= left;
  return true;
}

}  // namespace

absl::Status Orthonormalize(const KernelCall& call) {
  const int64_t rows = call.inputs[0]->shape()[0];
  const int64_t columns = call.inputs[0]->shape()[1];
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  std::vector<Column> basis;
  for (int64_t k = 0; k < columns; ++k) {
    Column column(rows), signs(rows);
    for (int64_t i = 0; i < rows; ++i) {
      column[i] = x[i * columns + k];
      signs[i] = OrthonormalSign(i, k);
    }
    if (!AddTo(basis, column)) column = AddTo(basis, signs) ? signs : Column(rows, 0);
    for (int64_t i = 0; i < rows; ++i) y[i * columns + k] = column[i];
    basis.push_back(column);
  }
  return absl::OkStatus();
}

absl::Status RestoreGradient(const KernelCall& call) {
  const auto& op = call.op<RestoreGradientOp>();
  const absl::Span<const double> basis = Numbers(call.inputs[RestoreGradientOp::kBasis]);
  const absl::Span<const double> other = Numbers(call.inputs[RestoreGradientOp::kOther]);
  const absl::Span<double> start = Numbers(call.inputs[RestoreGradientOp::kStart]);
  const absl::Span<double> grad = Numbers(call.outputs[0]);
  const absl::Span<const double> left = op.tall ? other : basis;
  const absl::Span<const double> right = op.tall ? basis : other;
  const Shape& shape = call.outputs[0]->shape();
  const int64_t rank = call.inputs[RestoreGradientOp::kBasis]->shape()[1];
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (int64_t column = 0; column < shape[1]; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < rank; ++k) sum += left[row * rank + k] * right[column * rank + k];
      grad[row * shape[1] + column] = sum;
    }
  }
  for (size_t i = 0; i < start.size(); ++i) start[i] = other[i];
  return absl::OkStatus();
}

}  // namespace tandem::reference
