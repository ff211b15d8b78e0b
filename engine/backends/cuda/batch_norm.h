#ifndef TANDEM_ENGINE_BACKENDS_CUDA_BATCH_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_BATCH_NORM_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backends/cuda/kernels/batch_norm.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Normalisations over channels, for tensors with channels last, in the compute type. A sum and a ReLU after a
// normalisation run together with it, forward and backward.

// Adds the steps of all ops of the group.
absl::Status LowerBackwardGroup(Lowering& lowering, const BackwardGroup& group);

// Helpers for all batch_norm ops.

// Returns input i with channels last, in the compute type.
absl::StatusOr<Region> ChannelsLastInput(Lowering& lowering, const Node& node, size_t i);
// Returns the layout of ChannelsLastInput for a value.
Layout ChannelsLastOf(const Lowering& lowering, ValueId id);
// Returns the value as rows of channels: a row for each position of each sample.
ChannelRows ChannelRowsOf(const Lowering& lowering, ValueId id);
// Returns the places of the inputs from input `first` on: float32 vectors with a number for each channel.
// INTERNAL if the op changes such a vector in place and the vector has another layout.
absl::StatusOr<std::vector<Region>> ChannelVectors(Lowering& lowering, const Node& node, size_t first);

// The memory for sums over rows, as kernels need it (SumScratch).
struct SumRegions {
  SumRegions(Lowering& lowering, const ChannelRows& sizes);
  SumScratch At(const RunContext& run) const { return {run.At<float>(partials), run.At<unsigned>(tickets)}; }
  Region partials;
  Region tickets;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_BATCH_NORM_H_
