#ifndef TANDEM_SERVER_SWEEPS_RANDOM_VALUES_H_
#define TANDEM_SERVER_SWEEPS_RANDOM_VALUES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/struct.pb.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// INVALID_ARGUMENT names each wrong field of the distribution, with paths from the SweepRandomField on.
absl::Status CheckDistribution(const v1::SweepRandomField& field);

// Returns a field's value in a sample. The distribution must be valid. `position` is the field's index in the
// sweep. The same arguments always give the same value.
google::protobuf::Value DrawValue(const v1::SweepRandomField& field, uint64_t seed, int position, int sample);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_RANDOM_VALUES_H_
