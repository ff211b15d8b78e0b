#ifndef TANDEM_ENGINE_BACKENDS_CPU_UPDATE_H_
#define TANDEM_ENGINE_BACKENDS_CPU_UPDATE_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// The reduction and the sum of gradients, and averages of parameters.
absl::Status LowerAllReduce(Lowering& lowering, const Node& node);
absl::Status LowerAccumulateGradient(Lowering& lowering, const Node& node);
absl::Status LowerMovingAverage(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_UPDATE_H_
