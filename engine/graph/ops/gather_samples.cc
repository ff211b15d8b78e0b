#include "engine/graph/ops/gather_samples.h"

#include "engine/base/status_macros.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

absl::StatusOr<std::vector<TensorType>> GatherSamplesOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 1 + kMostData));
  TANDEM_RETURN_IF_ERROR(CheckRank(*this, inputs, 0, 1));
  if (inputs[0].dtype != DType::kInt32) return InputError(*this, inputs, "the indices must be int32");
  std::vector<TensorType> batches;
  for (const TensorType& data : inputs.subspan(1)) {
    if (data.shape.rank() < 1 || data.shape[0] != inputs[1].shape[0]) {
      return InputError(*this, inputs, "all data must be of as many samples");
    }
    batches.push_back({data.dtype, data.shape.WithExtent(0, inputs[0].shape[0])});
  }
  return batches;
}

OpCost GatherSamplesOp::Cost(absl::Span<const TensorType> inputs,
                             absl::Span<const TensorType> outputs) const {
  // Only the gathered samples of the data are read.
  OpCost cost;
  cost.bytes = static_cast<double>(inputs[0].shape.elements()) * SizeOf(inputs[0].dtype);
  for (const TensorType& batch : outputs) {
    cost.bytes += 2 * static_cast<double>(batch.shape.elements()) * SizeOf(batch.dtype);
  }
  return cost;
}

}  // namespace tandem
