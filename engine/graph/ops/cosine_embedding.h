#ifndef TANDEM_ENGINE_GRAPH_OPS_COSINE_EMBEDDING_H_
#define TANDEM_ENGINE_GRAPH_OPS_COSINE_EMBEDDING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// As torch.nn.CosineEmbeddingLoss, with cos(a, b) = a b / sqrt((a a + 1e-12) (b b + 1e-12)).
//
// cosine_embedding(pairs [N, 2, D], alike int32 [N]) -> loss []. The loss of pair n is 1 - cos if alike[n] is
// above 0, else max(0, cos - margin).
//
// cosine_embedding(x [N, ...], y [N, ...]) -> loss []: flattens x[n] and y[n], and treats each pair as alike.
// y may have any floating-point type and is not differentiable.
//
// The result is the mean over n, or the sum if `sum`. It is float64 for float64 inputs, else float32.
class CosineEmbeddingOp final : public Op {
 public:
  // Added to the squared length of each vector.
  static constexpr double kEpsilon = 1e-12;

  CosineEmbeddingOp(double margin, bool sum) : margin(margin), sum(sum) {}
  absl::string_view kind() const override { return "cosine_embedding"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double margin;  // In [-1, 1].
  bool sum;
};

// cosine_embedding_grad(pairs or x, alike or y, grad_loss []) -> the gradient of the first input.
class CosineEmbeddingGradOp final : public Op {
 public:
  CosineEmbeddingGradOp(double margin, bool sum) : margin(margin), sum(sum) {}
  absl::string_view kind() const override { return "cosine_embedding_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double margin;
  bool sum;
};

// The places of the vectors in the inputs. First vector n begins at n first_stride in the first input. Second
// vector n begins at second_offset + n second_stride: in the first input for pairs, else in the second.
struct CosineVectors {
  explicit CosineVectors(const Shape& first, bool pairs);

  int64_t count = 0;
  int64_t size = 0;
  int64_t first_stride = 0;
  int64_t second_stride = 0;
  int64_t second_offset = 0;
  bool pairs = false;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_COSINE_EMBEDDING_H_
