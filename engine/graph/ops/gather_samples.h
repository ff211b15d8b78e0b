#ifndef TANDEM_ENGINE_GRAPH_OPS_GATHER_SAMPLES_H_
#define TANDEM_ENGINE_GRAPH_OPS_GATHER_SAMPLES_H_

#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// gather_samples(indices int32 [n], data_0 [N, ...], data_1 [N, ...], ...) -> batch_0 [n, ...], batch_1
// [n, ...], ..., batch_i[j] = data_i[indices[j]], of data_i's type: the samples of a batch and their targets,
// out of a whole data set that lies on the device. Indices are from 0 to N - 1; a device does not look. Not
// differentiable.
class GatherSamplesOp final : public Op {
 public:
  // Data that one op gathers from.
  static constexpr size_t kMostData = 4;

  absl::string_view kind() const override { return "gather_samples"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_GATHER_SAMPLES_H_
