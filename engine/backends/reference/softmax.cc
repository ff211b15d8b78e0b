#include "engine/graph/ops/softmax.h"

#include <cmath>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

// Calls visit(first, stride) for every line along `axis`. Its elements are first + k stride.
template <typename Visit>
void ForEachLine(const Shape& shape, int axis, Visit visit) {
  int64_t stride = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) stride *= shape[i];
  for (int64_t i = 0; i < shape.elements(); ++i) {
    if (i / stride % shape[axis] == 0) visit(i, stride);
  }
}

}  // namespace

absl::Status Softmax(const KernelCall& call) {
  const auto& op = call.op<SoftmaxOp>();
  const Shape& shape = call.inputs[0]->shape();
  const int64_t extent = shape[op.axis];
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  ForEachLine(shape, op.axis, [&](int64_t first, int64_t stride) {
    double largest = x[first];
    for (int64_t k = 0; k < extent; ++k) largest = std::fmax(largest, x[first + k * stride]);
    double sum = 0;
    for (int64_t k = 0; k < extent; ++k) sum += std::exp(x[first + k * stride] - largest);
    for (int64_t k = 0; k < extent; ++k) {
      const int64_t i = first + k * stride;
      y[i] = op.log ? x[i] - largest - std::log(sum) : std::exp(x[i] - largest) / sum;
    }
  });
  return absl::OkStatus();
}

absl::Status SoftmaxGrad(const KernelCall& call) {
  const auto& op = call.op<SoftmaxGradOp>();
  const Shape& shape = call.inputs[0]->shape();
  const int64_t extent = shape[op.axis];
  const absl::Span<const double> y = Numbers(call.inputs[0]);
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  const absl::Span<double> grad_x = Numbers(call.outputs[0]);
  ForEachLine(shape, op.axis, [&](int64_t first, int64_t stride) {
    double sum = 0;
    for (int64_t k = 0; k < extent; ++k) {
      const int64_t i = first + k * stride;
      sum += op.log ? grad_y[i] : grad_y[i] * y[i];
    }
    for (int64_t k = 0; k < extent; ++k) {
      const int64_t i = first + k * stride;
      grad_x[i] = op.log ? grad_y[i] - std::exp(y[i]) * sum : y[i] * (grad_y[i] - sum);
    }
  });
  return absl::OkStatus();
}

}  // namespace tandem::reference
