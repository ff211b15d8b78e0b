#ifndef TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_
#define TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// moving_average(average, value, step int64 [][, apply float64 []]), no outputs:
//   average = average + (1 - d) (value - average)
// Averages with exponential weights (Polyak and Juditsky 1992). After `step` averages, d is DecayAfter(step).
// d grows to `decay`, so that early values lose their weight soon. The op changes the average in place: a
// variable with the value's type and shape. If `apply` is given and 0, the average stays. Not differentiable.
class MovingAverageOp final : public Op {
 public:
  explicit MovingAverageOp(double decay) : decay(decay) {}
  absl::string_view kind() const override { return "moving_average"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {0}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  // Returns min(decay, (1 + step) / (10 + step)).
  double DecayAfter(int64_t step) const {
    const auto taken = static_cast<double>(step);
    return std::min(decay, (1 + taken) / (10 + taken));
  }

  static constexpr int kStepInput = 2;
  static constexpr int kApplyInput = 3;

  double decay;  // In [0, 1).
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_
