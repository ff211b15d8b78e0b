#ifndef TANDEM_ENGINE_TRAINING_SNAPSHOT_H_
#define TANDEM_ENGINE_TRAINING_SNAPSHOT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// The state that a replica keeps from step to step, by variable name, in the order of KeptVariables.
struct ReplicaVariables {
  // Variables that all replicas share are in the first replica's vectors alone.
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizer_state;
  std::vector<NamedTensor> statistics;  // The moving averages follow, if any.
  std::vector<NamedTensor> residuals;   // Each replica has its own.
};

// All replicas, by rank, between two steps.
using Snapshot = std::vector<ReplicaVariables>;

// Returns the tensors of a checkpoint: "shared/<variable>" for state that all replicas share, and
// "replica/<rank>/<variable>" for each replica's own state.
std::vector<NamedTensor> CheckpointTensors(Snapshot snapshot);
// Returns the part of a checkpoint from which any number of replicas can begin. A replica's own state becomes
// the mean with these shares, an entry for each replica of the checkpoint. A variable that is equal in all
// replicas keeps its bits.
std::map<std::string, Tensor> AverageCheckpoint(std::map<std::string, Tensor> checkpoint,
                                                absl::Span<const double> shares);
// Returns the part of a checkpoint with the variables of these names in which replicas differ, averaged as by
// AverageCheckpoint.
std::map<std::string, Tensor> MeansOf(const std::set<std::string>& names,
                                      const std::map<std::string, Tensor>& checkpoint,
                                      absl::Span<const double> shares);
// Returns a checkpoint's variables for the replica `rank`, by name. Copies nothing.
std::map<std::string, const Tensor*> TensorsOfReplica(const std::map<std::string, Tensor>& checkpoint,
                                                      int rank);

// Returns a model's tensors, float32: parameters, then statistics. If `averaged`, the moving averages replace
// both. State that differs between replicas becomes the mean with `shares`.
absl::StatusOr<std::vector<NamedTensor>> ModelTensors(const Snapshot& snapshot, bool averaged,
                                                      absl::Span<const double> shares);

// OUT_OF_RANGE with the parameter's name if it is not finite after `steps` steps.
absl::Status CheckFinite(const ReplicaVariables& variables, int64_t steps);

// Returns the name of the variable with the moving average of a parameter or a statistic.
std::string AverageName(const std::string& variable);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SNAPSHOT_H_
