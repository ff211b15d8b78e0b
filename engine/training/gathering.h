#ifndef TANDEM_ENGINE_TRAINING_GATHERING_H_
#define TANDEM_ENGINE_TRAINING_GATHERING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/communicator.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/measurement.h"
#include "engine/training/snapshot.h"

namespace tandem {

// What ranks of several processes tell each other beside what executables reduce. All ranks of the group call
// each of these together.

// What each rank gives, in the order of ranks, exactly; they may be of different lengths.
absl::StatusOr<std::vector<std::vector<double>>> GatherNumbers(const std::vector<double>& own,
                                                               Communicator* communicator);

// What each rank has measured. All have an evaluator, or none.
absl::StatusOr<std::vector<Measurement>> GatherMeasurements(const Measurement& own,
                                                            Communicator* communicator);

// Gives rank 0 what the ranks from `first` on keep from step to step, which are those of other processes: as
// Replica::ReadVariables(alike) says it of each, in the order of ranks. Nothing on other ranks. `own` is that
// of this rank.
absl::StatusOr<Snapshot> GatherVariables(const ReplicaVariables& own, const Alike& alike, int first,
                                         Communicator* communicator);

// That all begin at the same step, with parameters of the same digest (Replica::ParametersDigest), those of
// rank 0. FAILED_PRECONDITION where one does not.
absl::Status CheckBeginsAlike(int64_t step, double digest, Communicator* communicator);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_GATHERING_H_
