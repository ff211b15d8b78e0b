#ifndef TANDEM_ENGINE_BACKENDS_CPU_LSTM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LSTM_H_

#include "absl/status/status.h"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Add the steps of lstm and lstm_grad (engine/graph/ops/lstm.h), over plain float32 tensors.
absl::Status LowerLstm(Lowering& lowering, const Node& node);
absl::Status LowerLstmGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LSTM_H_
