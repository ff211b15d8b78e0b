#ifndef TANDEM_ENGINE_GRAPH_OPS_UNSCALE_GRADIENTS_H_
#define TANDEM_ENGINE_GRAPH_OPS_UNSCALE_GRADIENTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// How a loss's scale changes.
struct LossScalingSettings {
  double growth_factor = 2;        // Above 1.
  double backoff_factor = 0.5;     // In (0, 1).
  int64_t growth_interval = 2000;  // At least 1.
};

// Dynamic loss scaling (Micikevicius et al. 2018, arXiv:1710.03740): brings gradients of a loss that was
// multiplied by `scale` back to their size, says whether they are finite, and changes the scale.
//   unscale_gradients(scale [], good float64 [], skipped float64 [], meter float64 [1], step int64 [],
//                     g_0, ..., g_k) -> apply float64 [], taken int64 [], r_0, ..., r_k
// The scale and all g are of one floating-point type, which the r have too.
//   r_i = g_i / scale
//   apply = 1 where every element of every r is finite, else 0: the step is to be left out
//   taken = step - skipped, rounded to the nearest: of the `step` steps before this one, those not left out
// Then, where apply is 1, `good` grows by 1, and where it has reached growth_interval it becomes 0 and the
// scale is multiplied by growth_factor, but not beyond kMostScale; where apply is 0, `good` becomes 0,
// `skipped` and meter[0] grow by 1 and the scale is multiplied by backoff_factor, but not below kLeastScale.
// A scale that is beyond these bounds already stays. The first four inputs are variables, which the op
// changes in place. Not differentiable.
class UnscaleGradientsOp final : public Op {
 public:
  UnscaleGradientsOp(const LossScalingSettings& settings, int count) : settings(settings), count(count) {}
  absl::string_view kind() const override { return "unscale_gradients"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {0, 1, 2, 3}; }
  std::vector<std::pair<int, int>> InPlace() const override;

  static constexpr double kLeastScale = 1;
  static constexpr double kMostScale = 16777216;  // 2^24
  // Where the gradients begin among the inputs, and what is made of them among the outputs.
  static constexpr int kFirstGradient = 5;
  static constexpr int kFirstResult = 2;

  LossScalingSettings settings;
  int count;  // How many gradients there are.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_UNSCALE_GRADIENTS_H_
