#ifndef TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_H_
#define TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// accumulate(meter float64 [k], s_0 [], ..., s_k-1 []), no outputs: meter[i] += weights[i] s_i. The op
// changes the meter, a variable, in place. The host reads and clears the meter. Each scalar may have any
// floating-point type. Not differentiable.
class AccumulateOp final : public Op {
 public:
  explicit AccumulateOp(std::vector<double> weights) : weights(std::move(weights)) {}
  absl::string_view kind() const override { return "accumulate"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {0}; }

  std::vector<double> weights;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ACCUMULATE_H_
