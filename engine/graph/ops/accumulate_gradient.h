#ifndef TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_GRADIENT_H_
#define TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_GRADIENT_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// accumulate_gradient(sum, grad), no outputs: sum = scale grad where `overwrite`, else sum + scale grad. The
// sum is a variable of the gradient's type and shape, which the op changes in place: the gradient of a batch
// that is computed in parts, each with its share of the samples as its scale. Not differentiable.
class AccumulateGradientOp final : public Op {
 public:
  AccumulateGradientOp(double scale, bool overwrite) : scale(scale), overwrite(overwrite) {}
  absl::string_view kind() const override { return "accumulate_gradient"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {0}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double scale;    // Finite.
  bool overwrite;  // Of the first part.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_GRADIENT_H_
