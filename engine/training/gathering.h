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

// Data that ranks of several processes exchange outside of executables. All ranks of the group must call each
// function together.

// Returns the exact numbers of each rank, in the order of ranks. The lengths may differ.
absl::StatusOr<std::vector<std::vector<double>>> GatherNumbers(const std::vector<double>& own,
                                                               Communicator* communicator);

// Returns the measurement of each rank, in the order of ranks. Either all ranks have an evaluator, or none.
absl::StatusOr<std::vector<Measurement>> GatherMeasurements(const Measurement& own,
                                                            Communicator* communicator);

// Sends the variables of the ranks from `first` on, which belong to other processes, to rank 0. Returns them
// on rank 0, in the order of ranks, and an empty snapshot on other ranks. `own` is this rank's
// Replica::ReadVariables(alike).
absl::StatusOr<Snapshot> GatherVariables(const ReplicaVariables& own, const Alike& alike, int first,
                                         Communicator* communicator);

// Checks that all ranks begin at the same step and have the parameters of rank 0. `digest` is
// Replica::ParametersDigest. FAILED_PRECONDITION if a rank differs.
absl::Status CheckBeginsAlike(int64_t step, double digest, Communicator* communicator);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_GATHERING_H_
