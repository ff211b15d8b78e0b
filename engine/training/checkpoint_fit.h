#ifndef TANDEM_ENGINE_TRAINING_CHECKPOINT_FIT_H_
#define TANDEM_ENGINE_TRAINING_CHECKPOINT_FIT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/dataset.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Checks that a job can continue from a checkpoint. The checkpoint must hold exactly the state that a replica
// keeps from step to step, with the same shapes and types. The number of replicas may differ. `spec` was
// planned against `data`. INVALID_ARGUMENT with the wrong fields relative to the JobSpec ("model",
// "training.optimizer") and the difference.
absl::Status CheckCheckpointFits(const v1::JobSpec& spec, const DatasetInfo& data,
                                 const SafetensorsHeader& checkpoint);

// Checks that `spec` has steps left after `state`. INVALID_ARGUMENT with the reason NOTHING_TO_TRAIN and the
// field relative to the JobSpec if all epochs or steps are done. `spec` has its defaults.
absl::Status CheckSomethingIsLeft(const v1::JobSpec& spec, const DatasetInfo& data,
                                  const TrainingState& state);

// Returns the training's state when the checkpoint was written. DATA_LOSS if the checkpoint does not have it.
absl::StatusOr<TrainingState> StateOfCheckpoint(const SafetensorsHeader& checkpoint);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_CHECKPOINT_FIT_H_
