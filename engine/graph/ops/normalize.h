#ifndef TANDEM_ENGINE_GRAPH_OPS_NORMALIZE_H_
#define TANDEM_ENGINE_GRAPH_OPS_NORMALIZE_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// normalize(x uint8 or floating [N, C, ...]) -> y = (scale x - mean[c]) / std[c], of type `dtype`: what a
// data set's raw samples go through first. Not differentiable.
class NormalizeOp final : public Op {
 public:
  NormalizeOp(double scale, std::vector<double> mean, std::vector<double> std, DType dtype)
      : scale(scale), mean(std::move(mean)), std(std::move(std)), dtype(dtype) {}
  absl::string_view kind() const override { return "normalize"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  double scale;
  std::vector<double> mean;  // One for all channels, or one a channel.
  std::vector<double> std;   // Likewise; not 0.
  DType dtype;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_NORMALIZE_H_
