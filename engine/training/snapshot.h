#ifndef TANDEM_ENGINE_TRAINING_SNAPSHOT_H_
#define TANDEM_ENGINE_TRAINING_SNAPSHOT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// What a replica keeps from step to step, by its variables' names, in the order of the layers.
struct ReplicaVariables {
  // Of each of these: where all replicas have it alike only the first replica says it.
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizer_state;
  std::vector<NamedTensor> statistics;  // Then their moving averages, where there are any.
};

// All replicas, by rank, as they are between two steps.
using Snapshot = std::vector<ReplicaVariables>;

// As a checkpoint has them: "shared/<variable>" for what all replicas have alike, and for each replica
// "replica/<rank>/<variable>" for what is its own.
std::vector<NamedTensor> CheckpointTensors(Snapshot snapshot);
// The part of a checkpoint of `replicas` replicas from which any number of others can begin: the means, with
// these shares, of what was their own.
std::map<std::string, Tensor> AverageCheckpoint(std::map<std::string, Tensor> checkpoint,
                                                absl::Span<const double> shares);
// The part of a checkpoint that is for the replica `rank`: variables by name. Moves nothing.
std::map<std::string, const Tensor*> TensorsOfReplica(const std::map<std::string, Tensor>& checkpoint,
                                                      int rank);

// As a model has them, float32: the parameters, then the statistics; with `averaged` the moving averages of
// both under the same names. Means with `shares` where replicas have their own.
absl::StatusOr<std::vector<NamedTensor>> ModelTensors(const Snapshot& snapshot, bool averaged,
                                                      absl::Span<const double> shares);

// OUT_OF_RANGE, naming the parameter, where one is infinite or not a number after `steps` steps.
absl::Status CheckFinite(const ReplicaVariables& variables, int64_t steps);

// The variable in which the moving average of a parameter or a statistic is kept.
std::string AverageName(const std::string& variable);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SNAPSHOT_H_
