#ifndef TANDEM_ENGINE_TRAINING_RESUMPTION_H_
#define TANDEM_ENGINE_TRAINING_RESUMPTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "engine/base/env.h"
#include "engine/tensor/tensor.h"
#include "engine/training/training_length.h"
#include "engine/training/training_state.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The state from which a training continues.
struct Resumption {
  TrainingState state;
  // The checkpoint to continue from, without its seconds.
  v1::Checkpoint checkpoint;
  // The input of TensorsOfReplica.
  std::map<std::string, Tensor> tensors;
  // The weight of each replica of the checkpoint in a mean, by the settings of the job that wrote it.
  std::vector<double> shares;
  // Notices for people.
  std::vector<std::string> notices;
};

// Reads the newest checkpoint in `folder`, if any, for a job of `replicas` replicas. Skips a damaged
// checkpoint if an older checkpoint exists, and adds a notice. If `sets_aside`, renames the damaged file, so
// that it no longer counts. Returns nothing without checkpoints. FAILED_PRECONDITION if checkpoints exist but
// none can be used.
//
// Another job may have written the checkpoint. All replicas then begin with the mean of the other job's
// replicas, weighted by the other job's settings, in two cases: the numbers of replicas differ, or only the
// other job averaged parameters. A notice says so. If `spec` begins with another learning rate, a plateau's
// rate changes by the same factor.
absl::StatusOr<absl::optional<Resumption>> OpenCheckpoint(Env* env, const std::string& folder,
                                                          const v1::JobSpec& spec, int replicas,
                                                          bool sets_aside);

// Returns whether an ended training also ends there under `training`, whose length is `length`. For example,
// more epochs let an ended training continue.
bool StillEnds(const TrainingState& state, const v1::Training& training, const TrainingLength& length);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_RESUMPTION_H_
