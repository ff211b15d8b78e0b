#ifndef TANDEM_ENGINE_TRAINING_TARGETS_H_
#define TANDEM_ENGINE_TRAINING_TARGETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/data/dataset.h"
#include "engine/tensor/target.h"
#include "tandem/v1/loss.pb.h"

namespace tandem {

// Return the form of a data set's targets, for losses and metrics, in training and in validation.
inline Target TrainingTargetOf(const DatasetInfo& data) {
  return {data.train_target_type(), data.train_target_shape(), data.classes, data.ignored_label};
}
inline Target ValidationTargetOf(const DatasetInfo& data) {
  return {data.target_type, data.target_shape, data.classes, data.ignored_label};
}

// Returns the fault of a split's target numbers for the loss ("are from -1 to 2, but ..."), or "". The loss
// accepts the kind of target. Reads all targets if they must be in [0, 1]. Errors as Dataset::Gather.
absl::StatusOr<std::string> TargetRangeFault(const v1::Loss& loss, const Dataset& split,
                                             const DatasetInfo& data);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TARGETS_H_
