#include "engine/graph/ops/dropout.h"

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {

absl::Status Dropout(const KernelCall& call) {
  const auto& op = call.op<DropoutOp>();
  const int64_t samples = call.inputs[0]->shape()[0];
  const int64_t step = call.inputs[1]->data<int64_t>()[0];
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  const int64_t elements = samples == 0 ? 0 : call.inputs[0]->elements() / samples;
  for (int64_t n = 0; n < samples; ++n) {
    RandomStream words = op.WordsOf(step, n);
    for (int64_t i = n * elements; i < (n + 1) * elements; ++i) {
      y[i] = words.Next32() >= op.threshold() ? x[i] * op.scale() : 0;
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
