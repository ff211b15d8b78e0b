#ifndef TANDEM_ENGINE_BACKENDS_CPU_MUON_H_
#define TANDEM_ENGINE_BACKENDS_CPU_MUON_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

absl::Status LowerMuon(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_MUON_H_
