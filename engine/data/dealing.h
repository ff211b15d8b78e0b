#ifndef TANDEM_ENGINE_DATA_DEALING_H_
#define TANDEM_ENGINE_DATA_DEALING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace tandem {

// Returns each replica's number of samples, in proportion to its load, by largest remainder (Hamilton's
// method). Of equal remainders the lower rank wins. Loads are at least 0 and not all 0. The numbers add up to
// `samples`.
std::vector<int64_t> DealSamples(int64_t samples, absl::Span<const double> loads);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_DEALING_H_
