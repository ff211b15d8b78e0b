#ifndef TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_

#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/lowering.h"
#include "engine/graph/ops/convolution.h"

namespace tandem::cpu {

// The shapes that the three ops of a convolution share.
struct ConvProblem {
  Shape x;
  Shape weight;
  Shape y;
  Conv2dGeometry geometry;

  bool padded() const { return geometry.padding.h != 0 || geometry.padding.w != 0; }
  // As the own kernels see it: over an image whose padding has become part of it.
  ConvSizes sizes() const;
};

// Whether the own kernels, over batch-blocked images, take this convolution; oneDNN has all others.
bool TakesBatchBlocked(const Lowering& lowering, const ConvProblem& problem);
// Whether those do it through Winograd's transforms.
bool TakesWinograd(const Lowering& lowering, const ConvProblem& problem);
// Whether oneDNN may take Winograd's transforms for it.
bool MayTakeOneDnnWinograd(const Lowering& lowering, const ConvProblem& problem);
ConvProblem ProblemOfForward(const Lowering& lowering, const Node& node);
ConvProblem ProblemOfGradWeight(const Lowering& lowering, const Node& node);

absl::Status LowerConvForward(Lowering& lowering, const Node& node);
absl::Status LowerConvGradInput(Lowering& lowering, const Node& node);
absl::Status LowerConvGradWeight(Lowering& lowering, const Node& node);

// With oneDNN: called by the three above.
absl::Status LowerOneDnnConvForward(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerOneDnnConvGradInput(Lowering& lowering, const Node& node, const ConvProblem& problem);
absl::Status LowerOneDnnConvGradWeight(Lowering& lowering, const Node& node, const ConvProblem& problem);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CONVOLUTION_H_
