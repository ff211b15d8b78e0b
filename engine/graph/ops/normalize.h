#ifndef TANDEM_ENGINE_GRAPH_OPS_NORMALIZE_H_
#define TANDEM_ENGINE_GRAPH_OPS_NORMALIZE_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// normalize(x uint8 or floating [N, C, ...]) -> y = (scale x - mean[c]) / std[c], with type `dtype`. The
// first op on a data set's raw samples. Not differentiable.
class NormalizeOp final : public Op {
 public:
  NormalizeOp(double scale, std::vector<double> mean, std::vector<double> std, DType dtype)
      : scale(scale), mean(std::move(mean)), std(std::move(std)), dtype(dtype) {}
  absl::string_view kind() const override { return "normalize"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double scale;
  std::vector<double> mean;  // A number for all channels, or a number for each.
  std::vector<double> std;   // A number for all channels, or a number for each. Not 0.
  DType dtype;
};

// Adds a normalize over channels, which are the last extent of x [N, length, features], otherwise the second.
absl::StatusOr<ValueId> AddNormalize(double scale, const std::vector<double>& mean,
                                     const std::vector<double>& std, DType dtype, ValueId x, Graph& graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_NORMALIZE_H_
