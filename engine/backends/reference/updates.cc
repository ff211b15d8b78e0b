#include "engine/backends/reference/kernel.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/moving_average.h"
#include "engine/graph/ops/sgd.h"

namespace tandem::reference {

absl::Status Accumulate(const KernelCall& call) {
  const auto& op = call.op<AccumulateOp>();
  const absl::Span<double> meter = Numbers(call.inputs[0]);
  for (size_t i = 0; i < meter.size(); ++i) meter[i] += op.weights[i] * Numbers(call.inputs[i + 1])[0];
  return absl::OkStatus();
}

absl::Status AccumulateGradient(const KernelCall& call) {
  const auto& op = call.op<AccumulateGradientOp>();
  const absl::Span<double> sum = Numbers(call.inputs[0]);
  const absl::Span<const double> grad = Numbers(call.inputs[1]);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = (op.overwrite ? 0 : sum[i]) + op.scale * grad[i];
  return absl::OkStatus();
}

absl::Status MovingAverage(const KernelCall& call) {
  constexpr int kApply = MovingAverageOp::kApplyInput;
  if (call.inputs.size() > kApply && Numbers(call.inputs[kApply])[0] == 0) return absl::OkStatus();
  const int64_t step = call.inputs[MovingAverageOp::kStepInput]->data<int64_t>()[0];
  const double decay = call.op<MovingAverageOp>().DecayAfter(step);
  const absl::Span<double> average = Numbers(call.inputs[0]);
  const absl::Span<const double> parameter = Numbers(call.inputs[1]);
  for (size_t i = 0; i < average.size(); ++i) average[i] += (1 - decay) * (parameter[i] - average[i]);
  return absl::OkStatus();
}

absl::Status AllReduce(const KernelCall& call) {
  const double scale = call.op<AllReduceOp>().scale;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const absl::Span<const double> grad = Numbers(call.inputs[i]);
    const absl::Span<double> sum = Numbers(call.outputs[i]);
    for (size_t j = 0; j < sum.size(); ++j) sum[j] = scale * grad[j];
    if (call.communicator == nullptr) continue;
    TANDEM_RETURN_IF_ERROR(call.communicator->AllReduce(
        {sum.data(), static_cast<int64_t>(sum.size()), DType::kFloat64}, ReduceOp::kSum));
  }
  return absl::OkStatus();
}

absl::Status Sgd(const KernelCall& call) {
  const auto& op = call.op<SgdOp>();
  const absl::Span<double> parameter = Numbers(call.inputs[0]);
  const absl::Span<const double> grad = Numbers(call.inputs[1]);
  const double learning_rate = Numbers(call.inputs[2])[0];
  const bool first_step = call.inputs[3]->data<int64_t>()[0] == 0;
  for (size_t i = 0; i < parameter.size(); ++i) {
    double g = grad[i] + op.weight_decay * parameter[i];
    if (op.momentum != 0) {
      double& buffer = Numbers(call.inputs[4])[i];
      buffer = first_step ? g : op.momentum * buffer + (1 - op.dampening) * g;
      g = op.nesterov ? g + op.momentum * buffer : buffer;
    }
    parameter[i] -= learning_rate * g;
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
