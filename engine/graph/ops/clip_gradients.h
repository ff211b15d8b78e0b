#ifndef TANDEM_ENGINE_GRAPH_OPS_CLIP_GRADIENTS_H_
#define TANDEM_ENGINE_GRAPH_OPS_CLIP_GRADIENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// clip_gradients(g_0, ..., g_k) -> r_0, ..., r_k, of the same types, all floating-point and all of one. By
// norm (Pascanu et al. 2013, with the meaning of torch.nn.utils.clip_grad_norm_): r_i = g_i min(1, limit / (n
// + 1e-6)), where n is the 2-norm of all elements of all g. By value: each element is brought into [-limit,
// limit]. Not differentiable.
class ClipGradientsOp final : public Op {
 public:
  enum class Mode : uint8_t { kByNorm, kByValue };
  ClipGradientsOp(Mode mode, double limit, int count) : mode(mode), limit(limit), count(count) {}
  absl::string_view kind() const override { return "clip_gradients"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  // Added to the norm before it divides.
  static constexpr double kNormEpsilon = 1e-6;

  Mode mode;
  double limit;  // Above 0.
  int count;     // How many tensors it clips.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CLIP_GRADIENTS_H_
