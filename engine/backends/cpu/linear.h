#ifndef TANDEM_ENGINE_BACKENDS_CPU_LINEAR_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LINEAR_H_

#include "engine/backends/cpu/lowering.h"

namespace tandem::cpu {

// Returns whether a batch of `rows` fills enough of the blocks of the batch-blocked layout.
bool FillsBlocks(int64_t rows);
// Returns whether the own kernels compute a dense layer over `x`. oneDNN computes all others.
bool LinearTakesBatchBlocked(const Lowering& lowering, const Shape& x);

// Adds the gradient of a bias: the sum of batch-blocked dy, of shape `dy_shape` [N, C, ...], over all
// dimensions except C.
void EmitGradBias(Lowering& lowering, Region dy, const Shape& dy_shape, ValueId dbias);

absl::Status LowerLinearForward(Lowering& lowering, const Node& node);
absl::Status LowerLinearGradInput(Lowering& lowering, const Node& node);
absl::Status LowerLinearGradWeight(Lowering& lowering, const Node& node);

// The three functions above call these to use tiles.
absl::Status LowerTiledLinearForward(Lowering& lowering, const Node& node);
absl::Status LowerTiledLinearGradInput(Lowering& lowering, const Node& node);
absl::Status LowerTiledLinearGradWeight(Lowering& lowering, const Node& node);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LINEAR_H_
