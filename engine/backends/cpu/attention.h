#ifndef TANDEM_ENGINE_BACKENDS_CPU_ATTENTION_H_
#define TANDEM_ENGINE_BACKENDS_CPU_ATTENTION_H_

#include "absl/status/status.h"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Add the steps of matmul and of the ops around it in attention, over plain float32 tensors.
absl::Status LowerMatmul(Lowering& lowering, const Node& node);
absl::Status LowerAttentionSoftmax(Lowering& lowering, const Node& node);
absl::Status LowerAttentionSoftmaxGrad(Lowering& lowering, const Node& node);
absl::Status LowerSplitHeads(Lowering& lowering, const Node& node);
absl::Status LowerMergeHeads(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_ATTENTION_H_
