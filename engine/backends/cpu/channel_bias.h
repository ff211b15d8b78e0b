#ifndef TANDEM_ENGINE_BACKENDS_CPU_CHANNEL_BIAS_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CHANNEL_BIAS_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// In x's layout, plain or batch-blocked.
absl::Status LowerChannelBias(Lowering& lowering, const Node& node);
absl::Status LowerChannelBiasGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CHANNEL_BIAS_H_
