#ifndef TANDEM_ENGINE_BACKENDS_CUDA_BATCH_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_BATCH_NORM_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backends/cuda/kernels/batch_norm.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Normalisations by channels, over tensors with their channels last and in the compute type. What follows
// one, a sum with another value and a ReLU, is done along with it, forward and backward: so the lowerings of
// add and relu_grad ask here first.

// Adds the steps of the normalisation whose result `add`, which only reads it, adds to something, where they
// were left to it. False where there is none.
absl::StatusOr<bool> LowerNormalizedSum(Lowering& lowering, const Node& add);
// Whether the sum of gradients `add` is left to the relu_grad that alone reads it.
bool AddsForReluGrad(const Lowering& lowering, const Node& add);
// Adds the steps of the batch_norm_grad that reads what `relu_grad` makes along with those of `relu_grad`.
// False where there is none.
absl::StatusOr<bool> LowerReluGradOfNorm(Lowering& lowering, const Node& relu_grad);

// What the families of batch_norm share.

// Input i with its channels last and in the compute type.
absl::StatusOr<Region> ChannelsLastInput(Lowering& lowering, const Node& node, size_t i);
// Where such a value is, or is to be.
Layout ChannelsLastOf(const Lowering& lowering, ValueId id);
ChannelRows ChannelRowsOf(const Lowering& lowering, ValueId id);
// The float32 vectors of a number a channel: all inputs from input `first` on. Those that the op changes lie
// so.
absl::StatusOr<std::vector<Region>> ChannelVectors(Lowering& lowering, const Node& node, size_t first);
Region DefineVector(Lowering& lowering, ValueId id);

// Where sums over rows are taken.
struct SumRegions {
  SumRegions(Lowering& lowering, const ChannelRows& sizes);
  SumScratch At(const RunContext& run) const { return {run.At<float>(partials), run.At<unsigned>(tickets)}; }
  Region partials;
  Region tickets;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_BATCH_NORM_H_
