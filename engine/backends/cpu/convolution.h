#ifndef TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_

#include <cstdint>

#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/lowering.h"
#include "engine/graph/ops/convolution.h"

namespace tandem::cpu {

// The shapes of a convolution, for its three ops.
struct ConvProblem {
  Shape x;
  Shape weight;
  Shape y;
  Conv2dGeometry geometry;

  bool padded() const { return geometry.padding.h != 0 || geometry.padding.w != 0; }
  // The sizes for this backend's own kernels. The image includes its padding.
  ConvSizes sizes() const;
};

// Returns whether the own kernels, over batch-blocked images, compute this convolution. oneDNN computes all
// others.
bool TakesBatchBlocked(const Lowering& lowering, const ConvProblem& problem);
// Returns whether the own kernels use Winograd's transforms for it.
bool TakesWinograd(const Lowering& lowering, const ConvProblem& problem);
// Returns whether oneDNN may use Winograd's transforms for it.
bool MayTakeOneDnnWinograd(const Lowering& lowering, const ConvProblem& problem);
// Returns whether the own kernels for bfloat16 compute this convolution, over tiled images.
bool TakesTiles(const Lowering& lowering, const ConvProblem& problem);
ConvProblem ProblemOfForward(const Lowering& lowering, const Node& node);
ConvProblem ProblemOfGradWeight(const Lowering& lowering, const Node& node);

absl::Status LowerConvForward(Lowering& lowering, const Node& node);
absl::Status LowerConvGradInput(Lowering& lowering, const Node& node);
absl::Status LowerConvGradWeight(Lowering& lowering, const Node& node);

// Returns scratch of `floats` for each thread of the team.
Region ThreadScratch(Lowering& lowering, int64_t floats);

// Calls function(scratch, begin, end) for ranges of the items, one for each thread, each with its own
// scratch.
template <typename Function>
void ForWithScratch(const RunContext& run, Region scratch, int64_t floats, int64_t items,
                    const Function& function) {
  const int64_t shares = run.team->threads();
  run.team->For(shares, [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      function(run.At<float>(scratch) + share * floats, items * share / shares, items * (share + 1) / shares);
    }
  });
}

// The three functions above call these to use oneDNN.
absl::Status LowerOneDnnConvForward(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerOneDnnConvGradInput(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerOneDnnConvGradWeight(Lowering& lowering, const Node& node, const ConvProblem& problem);

// The three functions above call these to use tiles.
absl::Status LowerTiledConvForward(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerTiledConvGradInput(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerTiledConvGradWeight(Lowering& lowering, const Node& node, const ConvProblem& problem);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_
