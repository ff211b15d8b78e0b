#ifndef TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_

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
ConvProblem ProblemOfForward(const Lowering& lowering, const Node& node);
ConvProblem ProblemOfGradWeight(const Lowering& lowering, const Node& node);

absl::Status LowerConvForward(Lowering& lowering, const Node& node);
absl::Status LowerConvGradInput(Lowering& lowering, const Node& node);
absl::Status LowerConvGradWeight(Lowering& lowering, const Node& node);

// The three functions above call these to use oneDNN.
absl::Status LowerOneDnnConvForward(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerOneDnnConvGradInput(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerOneDnnConvGradWeight(Lowering& lowering, const Node& node, const ConvProblem& problem);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_
