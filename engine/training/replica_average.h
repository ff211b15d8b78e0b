#ifndef TANDEM_ENGINE_TRAINING_REPLICA_AVERAGE_H_
#define TANDEM_ENGINE_TRAINING_REPLICA_AVERAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/backend/communicator.h"
#include "engine/backend/variables.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// Replaces a variable of every replica by its mean: all replicas call this together, with `shares` that are
// alike and add up to 1, one a replica. A replica of share 0 takes the mean all the same. Equal shares: the
// sum in the order of ranks, times 1 over their number; otherwise the sum of the shares' parts in that order.
absl::Status AverageVariable(const std::string& name, absl::Span<const double> shares, Variables* variables,
                             Communicator* communicator);

// What AverageVariable makes of the values that replicas have, bit for bit. They are of one floating-point
// type and shape, and as many as shares.
Tensor MeanOf(absl::Span<const Tensor* const> values, absl::Span<const double> shares);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPLICA_AVERAGE_H_
