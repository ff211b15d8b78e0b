#ifndef TANDEM_ENGINE_BACKENDS_CPU_LSTM_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LSTM_H_

#include "absl/status/status.h"
#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

absl::Status LowerLstm(Lowering& lowering, const Node& node);
absl::Status LowerLstmGrad(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LSTM_H_
