#ifndef TANDEM_ENGINE_BACKENDS_CUDA_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_REDUCTIONS_H_

#include <cstddef>
#include <vector>

#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Gives the reducing steps their `run`, which begins the reduction. It overlaps the next steps and is awaited
// by a separate step: see place_reductions.h. Returns the number of reductions, for BegunReductions.
size_t SettleReductions(std::vector<Step>& steps);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_REDUCTIONS_H_
