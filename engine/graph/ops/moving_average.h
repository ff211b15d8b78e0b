#ifndef TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_
#define TANDEM_ENGINE_GRAPH_OPS_MOVING_AVERAGE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// moving_average(average, value, step int64 [][, apply float64 []]), no outputs: average = d average + (1 -
// d) value, computed as average + (1 - d) (value - average) (Polyak and Juditsky 1992, with exponential
// weights). After `step` averages were taken, d = DecayAfter(step): it grows to `decay`, so that early values
// are soon forgotten. The average is a variable of the value's type and shape, which the op changes in place.
// Where `apply` is given and 0, it stays. Not differentiable.
class MovingAverageOp final : public Op {
 public:
  explicit MovingAverageOp(double decay) : decay(decay) {}
  absl::string_view kind() const override { return "moving_average"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {0}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  // min(decay, (1 + step) / (10 + step)).
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
