#include "engine/graph/ops/elementwise.h"

#include <cstring>

#include "engine/backends/reference/kernel.h"
#include "engine/graph/ops/normalize.h"

namespace tandem::reference {

absl::Status Relu(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] < 0 ? 0 : x[i];
  return absl::OkStatus();
}

absl::Status ReluGrad(const KernelCall& call) {
  const absl::Span<const double> y = Numbers(call.inputs[0]);
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  const absl::Span<double> grad_x = Numbers(call.outputs[0]);
  for (size_t i = 0; i < grad_x.size(); ++i) grad_x[i] = y[i] <= 0 ? 0 : grad_y[i];
  return absl::OkStatus();
}

absl::Status Add(const KernelCall& call) {
  const absl::Span<const double> a = Numbers(call.inputs[0]);
  const absl::Span<const double> b = Numbers(call.inputs[1]);
  const absl::Span<double> sum = Numbers(call.outputs[0]);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
  return absl::OkStatus();
}

absl::Status Multiply(const KernelCall& call) {
  const absl::Span<const double> a = Numbers(call.inputs[0]);
  const absl::Span<const double> b = Numbers(call.inputs[1]);
  const absl::Span<double> product = Numbers(call.outputs[0]);
  for (size_t i = 0; i < product.size(); ++i) product[i] = a[i] * b[i];
  return absl::OkStatus();
}

absl::Status Scale(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = call.op<ScaleOp>().factor * x[i];
  return absl::OkStatus();
}

absl::Status Divide(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const double divisor = Numbers(call.inputs[1])[0];
  const double factor = divisor == 0 ? 0 : call.op<DivideOp>().factor / divisor;
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = divisor == 0 ? 0 : factor * x[i];
  return absl::OkStatus();
}

absl::Status Reshape(const KernelCall& call) {
  std::memcpy(call.outputs[0]->raw_data(), call.inputs[0]->raw_data(), call.outputs[0]->bytes());
  return absl::OkStatus();
}

absl::Status Normalize(const KernelCall& call) {
  const auto& op = call.op<NormalizeOp>();
  const Tensor x = call.inputs[0]->CastTo(DType::kFloat64);
  const absl::Span<const double> numbers = x.data<double>();
  const absl::Span<double> y = Numbers(call.outputs[0]);
  const int64_t channels = x.shape().rank() >= 2 ? x.shape()[1] : 1;
  const int64_t rows = x.shape().rank() >= 1 ? x.shape()[0] : 1;
  const int64_t elements_per_channel = x.elements() / (rows * channels);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t channel = i / elements_per_channel % channels;
    const double mean = op.mean.size() == 1 ? op.mean[0] : op.mean[channel];
    const double std = op.std.size() == 1 ? op.std[0] : op.std[channel];
    y[i] = (op.scale * numbers[i] - mean) / std;
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
