#ifndef TANDEM_ENGINE_TRAINING_RESUMPTION_H_
#define TANDEM_ENGINE_TRAINING_RESUMPTION_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "engine/base/env.h"
#include "engine/tensor/tensor.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Where a training goes on.
struct Resumption {
  TrainingState state;
  // For TensorsOfReplica.
  std::map<std::string, Tensor> tensors;
  // What a person should know of it; empty where there is nothing.
  std::string notice;
};

// Reads the checkpoint at `path`, where there is one, for a job of `replicas` replicas. Where it is of
// another number of them, all begin with the mean of what its replicas had of their own, as `spec` weights
// them, and the notice says so. FAILED_PRECONDITION where it cannot be used.
absl::StatusOr<absl::optional<Resumption>> OpenCheckpoint(Env* env, const std::string& path,
                                                          const v1::Replicas& spec, int replicas);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_RESUMPTION_H_
