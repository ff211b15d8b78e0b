#ifndef TANDEM_ENGINE_GRAPH_OPS_GRADIENT_FACTORS_H_
#define TANDEM_ENGINE_GRAPH_OPS_GRADIENT_FACTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// The ops of PowerSGD (Vogels et al. 2019, arXiv:1905.13727), which approximates the sum of the replicas'
// matrices by two thin factors. GradientReduction (engine/training/gradient_reduction.h) has the whole step.

// orthonormalize(x [rows, columns]) -> y [rows, columns], with columns <= rows: orthonormal columns that span
// the columns of x. Gram-Schmidt, in which each column is orthogonalised twice (Giraud et al. 2005, "The loss
// of orthogonality in the Gram-Schmidt orthogonalization process").
// A column that is zero or depends on earlier columns is replaced by the column of OrthonormalSign, made
// orthogonal to the earlier columns. If this column depends on them too, it is zero. Not differentiable.
class OrthonormalizeOp final : public Op {
 public:
  // A column depends on earlier columns if at most this part of its length remains.
  static constexpr double kDependent = 1e-6;

  absl::string_view kind() const override { return "orthonormalize"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

// restore_gradient(basis, other, start) -> grad [rows, columns]:
//
//   grad = basis other^T      basis [rows, rank], other [columns, rank]
//   start = other             start [columns, rank]
//
// If `tall`: grad = other basis^T, basis is [columns, rank], and other and start are [rows, rank].
// Changes start in place: a variable. Each element of grad has the same bits for any number of
// threads. Not differentiable.
class RestoreGradientOp final : public Op {
 public:
  explicit RestoreGradientOp(bool tall) : tall(tall) {}
  absl::string_view kind() const override { return "restore_gradient"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<int> MutatedInputs() const override { return {kStart}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  static constexpr int kBasis = 0;
  static constexpr int kOther = 1;
  static constexpr int kStart = 2;

  bool tall;  // Whether grad has more rows than columns.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_GRADIENT_FACTORS_H_
