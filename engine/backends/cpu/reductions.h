#ifndef TANDEM_ENGINE_BACKENDS_CPU_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKENDS_CPU_REDUCTIONS_H_

#include <cstddef>
#include <vector>

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Gives the steps that reduce their `run`. One that the next step uses reduces at once; any other begins,
// goes on beside the steps that follow, and is awaited by a step of its own: see place_reductions.h. Returns
// how many of these there are, for BegunReductions.
size_t SettleReductions(std::vector<Step>& steps);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_REDUCTIONS_H_
