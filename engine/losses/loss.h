#ifndef TANDEM_ENGINE_LOSSES_LOSS_H_
#define TANDEM_ENGINE_LOSSES_LOSS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// INVALID_ARGUMENT where the message names no loss.
absl::Status CheckLoss(const v1::Loss& loss);

// The shape that the network's output for one sample must have for data of so many classes.
Shape OutputShapeFor(const v1::Loss& loss, int64_t classes);

// Appends the loss of `output` (a batch) against `labels`, int32 [batch], and returns it: the mean over the
// batch, a scalar.
absl::StatusOr<ValueId> AddLoss(const v1::Loss& loss, ValueId output, ValueId labels, Graph& graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LOSSES_LOSS_H_
