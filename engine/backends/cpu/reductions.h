#ifndef TANDEM_ENGINE_BACKENDS_CPU_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKENDS_CPU_REDUCTIONS_H_

#include <cstddef>
#include <vector>

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Gives the reducing steps their `run`. A reduction that the next step uses runs at once. Any other only
// begins, overlaps the next steps, and is awaited by a separate step: see place_reductions.h. Returns the
// number of awaited reductions, for BegunReductions.
size_t SettleReductions(std::vector<Step>& steps);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_REDUCTIONS_H_
