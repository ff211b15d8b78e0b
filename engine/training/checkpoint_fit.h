#ifndef TANDEM_ENGINE_TRAINING_CHECKPOINT_FIT_H_
#define TANDEM_ENGINE_TRAINING_CHECKPOINT_FIT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/dataset.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// That a job can go on from a checkpoint: that this has all that a replica of the job keeps from step to
// step, of the same shapes and types, and nothing else. The number of replicas need not be the same. `spec`
// was planned against `data`. INVALID_ARGUMENT with the fields at fault relative to the JobSpec ("model",
// "training.optimizer"), naming what differs.
absl::Status CheckCheckpointFits(const v1::JobSpec& spec, const DatasetInfo& data,
                                 const SafetensorsHeader& checkpoint);

// That training goes on from where `state` stood: INVALID_ARGUMENT, with the reason NOTHING_TO_TRAIN and the
// field relative to the JobSpec, where the epochs or steps of `spec`, which has its defaults, are all done.
absl::Status CheckSomethingIsLeft(const v1::JobSpec& spec, const DatasetInfo& data,
                                  const TrainingState& state);

// Where training stood when a checkpoint was written. DATA_LOSS where it does not say so.
absl::StatusOr<TrainingState> StateOfCheckpoint(const SafetensorsHeader& checkpoint);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_CHECKPOINT_FIT_H_
