#ifndef TANDEM_ENGINE_GRAPH_OPS_UNSCALE_GRADIENTS_H_
#define TANDEM_ENGINE_GRAPH_OPS_UNSCALE_GRADIENTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// The rule by which the loss's scale changes.
struct LossScalingSettings {
  double growth_factor = 2;        // Above 1.
  double backoff_factor = 0.5;     // In (0, 1).
  int64_t growth_interval = 2000;  // At least 1.
};

// Dynamic loss scaling (Micikevicius et al. 2018, arXiv:1710.03740). Divides the gradients of a scaled loss
// by the scale, tests whether they are finite, and changes the scale.
//
//   unscale_gradients(scale [], good float64 [], skipped float64 [], meter float64 [1], step int64 [],
//                     g_0, ..., g_k) -> apply float64 [], taken int64 [], r_0, ..., r_k
//   r_i = g_i / scale
//   apply = 1 if every element of every r is finite, else 0: skip the step
//   taken = step - skipped, rounded to the nearest: the number of earlier steps that were not skipped
//
// The scale and all g and r have the same floating-point type.
//
// Then the op changes the first four inputs, variables, in place. If apply is 1, `good` grows by 1. At
// growth_interval it returns to 0, and the scale is multiplied by growth_factor, up to kMostScale. If apply
// is 0, `good` becomes 0, `skipped` and meter[0] grow by 1, and the scale is multiplied by backoff_factor,
// down to kLeastScale. A scale beyond these bounds stays. Not differentiable.
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
  // The positions of the first gradient among the inputs and of the first result among the outputs.
  static constexpr int kFirstGradient = 5;
  static constexpr int kFirstResult = 2;

  LossScalingSettings settings;
  int count;  // The number of gradients.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_UNSCALE_GRADIENTS_H_
