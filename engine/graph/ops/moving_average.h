#ifndef TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_
#define TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// moving_average(average, parameter[, apply float64 []]), no outputs: average = decay average + (1 - decay)
// parameter, computed as average + (1 - decay) (parameter - average). The average is a variable of the
// parameter's type and shape, which the op changes in place (Polyak and Juditsky 1992, with exponential
// weights). Where `apply` is given and 0, it stays. Not differentiable.
class MovingAverageOp final : public Op {
 public:
  explicit MovingAverageOp(double decay) : decay(decay) {}
  absl::string_view kind() const override { return "moving_average"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {0}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double decay;  // In [0, 1).
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_
