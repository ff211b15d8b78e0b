#ifndef TANDEM_ENGINE_GRAPH_OPS_MATMUL_H_
#define TANDEM_ENGINE_GRAPH_OPS_MATMUL_H_

#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// matmul(a [..., M, K], b [..., K, N]) -> [..., M, N]: the product of each pair of matrices. All dimensions
// but the last two are equal. With transpose_a, a is [..., K, M]. With transpose_b, b is [..., N, K].
class MatmulOp final : public Op {
 public:
  explicit MatmulOp(bool transpose_a = false, bool transpose_b = false)
      : transpose_a(transpose_a), transpose_b(transpose_b) {}
  absl::string_view kind() const override { return "matmul"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  bool transpose_a;
  bool transpose_b;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_MATMUL_H_
