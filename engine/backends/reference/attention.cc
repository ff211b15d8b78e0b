#include "engine/graph/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/backends/reference/kernel.h"
#include "engine/graph/ops/matmul.h"

namespace tandem::reference {
namespace {

// A tensor [..., rows, columns], or its transposes, matrix by matrix.
struct Matrices {
  Matrices(Tensor* tensor, bool transposed)
      : numbers(Numbers(tensor)),
        transposed(transposed),
        stored_rows(tensor->shape()[tensor->shape().rank() - 2]),
        stored_columns(tensor->shape()[-1]) {}

  int64_t rows() const { return transposed ? stored_columns : stored_rows; }
  int64_t columns() const { return transposed ? stored_rows : stored_columns; }
  double& at(int64_t matrix, int64_t row, int64_t column) const {
    const int64_t first = matrix * stored_rows * stored_columns;
    return numbers[first + (transposed ? column * stored_columns + row : row * stored_columns + column)];
  }

  absl::Span<double> numbers;
  bool transposed;
  int64_t stored_rows;
  int64_t stored_columns;
};

// Calls visit(first element, number of visible keys) for each query.
template <typename Visit>
void ForEachQuery(const Shape& scores, bool causal, const Visit& visit) {
  const int64_t queries = scores[scores.rank() - 2];
  const int64_t keys = scores[-1];
  for (int64_t row = 0; row < scores.elements() / keys; ++row) {
    visit(row * keys, causal ? std::min(row % queries + 1, keys) : keys);
  }
}

}  // namespace

absl::Status Matmul(const KernelCall& call) {
  const auto& op = call.op<MatmulOp>();
  const Matrices a(call.inputs[0], op.transpose_a);
  const Matrices b(call.inputs[1], op.transpose_b);
  const Matrices y(call.outputs[0], false);
  const int64_t matrices = call.outputs[0]->elements() / (y.rows() * y.columns());
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    for (int64_t row = 0; row < y.rows(); ++row) {
      for (int64_t column = 0; column < y.columns(); ++column) {
        double sum = 0;
        for (int64_t k = 0; k < a.columns(); ++k) sum += a.at(matrix, row, k) * b.at(matrix, k, column);
        y.at(matrix, row, column) = sum;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AttentionSoftmax(const KernelCall& call) {
  const auto& op = call.op<AttentionSoftmaxOp>();
  const Shape& shape = call.inputs[0]->shape();
  const int64_t keys = shape[-1];
  ForEachQuery(shape, op.causal, [&](int64_t first, int64_t seen) {
    const absl::Span<const double> scores = Numbers(call.inputs[0]).subspan(first, seen);
    const absl::Span<double> weights = Numbers(call.outputs[0]).subspan(first, keys);
    double largest = op.scale * scores[0];
    for (const double score : scores) largest = std::max(largest, op.scale * score);
    double sum = 0;
    for (const double score : scores) sum += std::exp(op.scale * score - largest);
    for (int64_t k = 0; k < keys; ++k) {
      weights[k] = k < seen ? std::exp(op.scale * scores[k] - largest) / sum : 0;
    }
  });
  return absl::OkStatus();
}

absl::Status AttentionSoftmaxGrad(const KernelCall& call) {
  const auto& op = call.op<AttentionSoftmaxGradOp>();
  const Shape& shape = call.inputs[0]->shape();
  const int64_t keys = shape[-1];
  ForEachQuery(shape, op.causal, [&](int64_t first, int64_t seen) {
    const absl::Span<const double> weights = Numbers(call.inputs[0]).subspan(first, keys);
    const absl::Span<const double> grads = Numbers(call.inputs[1]).subspan(first, keys);
    const absl::Span<double> grad_scores = Numbers(call.outputs[0]).subspan(first, keys);
    double mean = 0;
    for (int64_t k = 0; k < seen; ++k) mean += weights[k] * grads[k];
    for (int64_t k = 0; k < keys; ++k) {
      grad_scores[k] = k < seen ? op.scale * weights[k] * (grads[k] - mean) : 0;
    }
  });
  return absl::OkStatus();
}

}  // namespace tandem::reference
