#ifndef TANDEM_ENGINE_BACKENDS_CUDA_BIAS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_BIAS_H_

#include "absl/status/status.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Adds steps that define `dbias` [C] as the sums over samples and positions of `dy` [N, C, ...], which is at
// `place`. Uses the sums of a normalisation if they exist. Does nothing if `dbias` is kNoValue.
absl::Status EmitGradBias(Lowering& lowering, ValueId dy, const Place& place, ValueId dbias);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_BIAS_H_
