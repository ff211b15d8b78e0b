#ifndef TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_GRADIENT_H_
#define TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_GRADIENT_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// accumulate_gradient(sum, grad), no outputs: sum = scale grad if `overwrite`, else sum + scale grad. The op
// changes the sum in place: a variable with the gradient's type and shape. It adds up the gradient of a batch
// that is computed in parts. The scale of a part is its share of the samples. Not differentiable.
class AccumulateGradientOp final : public Op {
 public:
  AccumulateGradientOp(double scale, bool overwrite) : scale(scale), overwrite(overwrite) {}
  absl::string_view kind() const override { return "accumulate_gradient"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {0}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double scale;    // Finite.
  bool overwrite;  // True for the first part.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_GRADIENT_H_
