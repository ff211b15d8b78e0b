#ifndef TANDEM_ENGINE_GRAPH_OPS_CLIP_GRADIENTS_H_
#define TANDEM_ENGINE_GRAPH_OPS_CLIP_GRADIENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// clip_gradients(g_0, ..., g_k) -> r_0, ..., r_k, all with the same floating-point type. By norm: r_i = g_i
// min(1, limit / (n + 1e-6)), where n is the 2-norm of all elements of all g (Pascanu et al. 2013), as
// torch.nn.utils.clip_grad_norm_. By value: clamps each element to [-limit, limit]. Not differentiable.
class ClipGradientsOp final : public Op {
 public:
  enum class Mode : uint8_t { kByNorm, kByValue };
  ClipGradientsOp(Mode mode, double limit, int count) : mode(mode), limit(limit), count(count) {}
  absl::string_view kind() const override { return "clip_gradients"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  // Added to the norm before the division.
  static constexpr double kNormEpsilon = 1e-6;

  Mode mode;
  double limit;  // Above 0.
  int count;     // The number of tensors.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CLIP_GRADIENTS_H_
