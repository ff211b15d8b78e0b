#ifndef TANDEM_ENGINE_DATA_DEALING_H_
#define TANDEM_ENGINE_DATA_DEALING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace tandem {

// How many of `samples` each replica gets: in proportion to the loads, by largest remainder (Hamilton's
// method); of equal remainders the lower rank's counts. Loads are at least 0 and not all 0. The counts add up
// to `samples`.
std::vector<int64_t> DealSamples(int64_t samples, absl::Span<const double> loads);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DEALING_H_
