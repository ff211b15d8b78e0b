#ifndef TANDEM_ENGINE_TRAINING_GATHERING_H_
#define TANDEM_ENGINE_TRAINING_GATHERING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/communicator.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/measurement.h"
#include "engine/training/replica.h"
#include "engine/training/snapshot.h"

namespace tandem {

// Data that ranks exchange outside of executables. All ranks of the group must call each function together.

// Returns the exact numbers of each rank on all ranks, in the order of ranks. The lengths may differ.
absl::StatusOr<std::vector<std::vector<double>>> GatherNumbers(const std::vector<double>& own,
                                                               Communicator* communicator);

// Returns the first text that is not empty, in the order of ranks, on all ranks. Empty if all are.
absl::StatusOr<std::string> GatherText(const std::string& own, Communicator* communicator);

// Returns the measurement of each rank on rank 0, in the order of ranks, and nothing on other ranks. Either
// all ranks have an evaluator, or none.
absl::StatusOr<std::vector<Measurement>> GatherMeasurements(Measurement own, Communicator* communicator);

// Returns a copy of the state of all replicas on rank 0, and an empty snapshot on other ranks. State that is
// `alike` or frozen comes from rank 0 alone. If not `whole`, only state from which ModelTensors makes a
// model. Other ranks copy a single variable at a time.
absl::StatusOr<Snapshot> GatherSnapshot(const Replica& replica, const Alike& alike, bool whole,
                                        Communicator* communicator);

// Checks that all ranks begin at the same step and have the parameters of rank 0. `digest` is
// Replica::ParametersDigest. FAILED_PRECONDITION if a rank differs.
absl::Status CheckBeginsAlike(int64_t step, double digest, Communicator* communicator);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_GATHERING_H_
