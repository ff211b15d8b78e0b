#ifndef TANDEM_ENGINE_BACKENDS_CPU_CLASSIFICATION_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CLASSIFICATION_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

absl::Status LowerSoftmaxCrossEntropy(Lowering& lowering, const Node& node);
absl::Status LowerSoftmaxCrossEntropyGrad(Lowering& lowering, const Node& node);
absl::Status LowerCountCorrect(Lowering& lowering, const Node& node);
absl::Status LowerCountLabels(Lowering& lowering, const Node& node);
absl::Status LowerCountSides(Lowering& lowering, const Node& node);
absl::Status LowerAccumulate(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CLASSIFICATION_H_
