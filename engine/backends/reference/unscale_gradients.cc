#include "engine/graph/ops/unscale_gradients.h"

#include <algorithm>
#include <cmath>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {

absl::Status UnscaleGradients(const KernelCall& call) {
  using Op = UnscaleGradientsOp;
  const LossScalingSettings& settings = call.op<Op>().settings;
  double& scale = Numbers(call.inputs[0])[0];
  double& good = Numbers(call.inputs[1])[0];
  double& skipped = Numbers(call.inputs[2])[0];
  bool finite = true;
  for (int i = 0; i < call.op<Op>().count; ++i) {
    const absl::Span<const double> grad = Numbers(call.inputs[Op::kFirstGradient + i]);
    const absl::Span<double> result = Numbers(call.outputs[Op::kFirstResult + i]);
    for (size_t j = 0; j < grad.size(); ++j) {
      result[j] = grad[j] / scale;
      finite = finite && std::isfinite(result[j]);
    }
  }
  Numbers(call.outputs[0])[0] = finite ? 1 : 0;
  call.outputs[1]->data<int64_t>()[0] = call.inputs[4]->data<int64_t>()[0] - std::llround(skipped);
  if (!finite) {
    good = 0;
    skipped += 1;
    Numbers(call.inputs[3])[0] += 1;
    scale = std::min(scale, std::max(scale * settings.backoff_factor, Op::kLeastScale));
  } else if (++good >= static_cast<double>(settings.growth_interval)) {
    good = 0;
    scale = std::max(scale, std::min(scale * settings.growth_factor, Op::kMostScale));
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
