#ifndef TANDEM_ENGINE_TRAINING_REPLICA_AVERAGE_H_
#define TANDEM_ENGINE_TRAINING_REPLICA_AVERAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/backend/communicator.h"
#include "engine/backend/variables.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// Replaces a variable of every replica by its mean. All replicas must call this together with equal `shares`,
// which have an entry for each replica and add up to 1. A replica with share 0 also receives the mean. Equal
// shares: the sum in the order of ranks, divided by their number. Otherwise: the sum of share times value, in
// the same order.
absl::Status AverageVariable(const std::string& name, absl::Span<const double> shares, Variables* variables,
                             Communicator* communicator);

// Returns the result of AverageVariable for these values, bit for bit. All values have the same
// floating-point type and shape. There are as many values as shares.
Tensor MeanOf(absl::Span<const Tensor* const> values, absl::Span<const double> shares);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_AVERAGE_H_
