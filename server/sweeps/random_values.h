#ifndef TANDEM_SERVER_SWEEPS_RANDOM_VALUES_H_
#define TANDEM_SERVER_SWEEPS_RANDOM_VALUES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/struct.pb.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// INVALID_ARGUMENT with each of the distribution's fields at fault, paths from the SweepRandomField on.
absl::Status CheckDistribution(const v1::SweepRandomField& field);

// The value of a field, whose distribution is right, in a sample. `position` is the field's among those of
// the sweep. The same wherever and whenever it is asked for.
google::protobuf::Value DrawValue(const v1::SweepRandomField& field, uint64_t seed, int position, int sample);

}  // namespace tandem

#endif  // TANDEM_SERVER_SWEEPS_RANDOM_VALUES_H_
