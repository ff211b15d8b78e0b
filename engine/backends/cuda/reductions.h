#ifndef TANDEM_ENGINE_BACKENDS_CUDA_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_REDUCTIONS_H_

#include <cstddef>
#include <vector>

#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Gives the steps that reduce their `run`, which begins the reduction: it goes on beside the steps that
// follow, and is awaited by a step of its own: see place_reductions.h. Returns how many there are, for
// BegunReductions.
size_t SettleReductions(std::vector<Step>& steps);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_REDUCTIONS_H_
