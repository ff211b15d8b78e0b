#ifndef TANDEM_ENGINE_BACKENDS_CUDA_BIAS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_BIAS_H_

#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Adds steps that define `dbias` [C] as the sums over samples and positions of dy [N, C, ...], which lies in
// `place`.
void EmitGradBias(Lowering& lowering, const Place& place, ValueId dbias);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_BIAS_H_
