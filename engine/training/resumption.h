#ifndef TANDEM_ENGINE_TRAINING_RESUMPTION_H_
#define TANDEM_ENGINE_TRAINING_RESUMPTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "engine/base/env.h"
#include "engine/tensor/tensor.h"
#include "engine/training/step_schedule.h"
#include "engine/training/training_state.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Where a training goes on.
struct Resumption {
  TrainingState state;
  // The checkpoint that training goes on from, without its seconds.
  v1::Checkpoint checkpoint;
  // For TensorsOfReplica.
  std::map<std::string, Tensor> tensors;
  // What a person should know of it.
  std::vector<std::string> notices;
};

// Reads the newest checkpoint in `folder`, where there is one, for a job of `replicas` replicas. One that is
// damaged is passed by where there is an older one, which the notices say; with `sets_aside` it is renamed,
// so that it counts as none any more. Where the checkpoint is of another number of replicas, all begin with
// the mean of what its replicas had of their own, as `spec` weights them, and the notices say so.
// FAILED_PRECONDITION where there is none that can be used, though there is one.
absl::StatusOr<absl::optional<Resumption>> OpenCheckpoint(Env* env, const std::string& folder,
                                                          const v1::Replicas& spec, int replicas,
                                                          bool sets_aside);

// Whether a training that ended so ends there too as `training`, whose length is `length`, says: a checkpoint
// of one that has ended may be gone on from with more epochs, say.
bool StillEnds(const TrainingState& state, const v1::Training& training, const TrainingLength& length);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_RESUMPTION_H_
