#ifndef TANDEM_ENGINE_GRAPH_OPS_GATHER_SAMPLES_H_
#define TANDEM_ENGINE_GRAPH_OPS_GATHER_SAMPLES_H_

#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// gather_samples(indices int32 [n], data_0 [N, ...], data_1 [N, ...], ...) -> batch_0 [n, ...], batch_1 [n,
// ...], ...: batch_i[j] = data_i[indices[j]], with data_i's type. Takes a batch's samples and targets out of
// a whole data set on the device. Indices are in [0, N), which devices do not check. Not differentiable.
class GatherSamplesOp final : public Op {
 public:
  // The largest number of data tensors.
  static constexpr size_t kMostData = 4;

  absl::string_view kind() const override { return "gather_samples"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_GATHER_SAMPLES_H_
