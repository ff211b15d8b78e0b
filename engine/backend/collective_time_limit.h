#ifndef TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_
#define TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// The bounds of such a time, wherever it is said.
inline constexpr absl::Duration kLeastCollectiveTime = absl::Seconds(1);
inline constexpr absl::Duration kMostCollectiveTime = absl::Hours(24);

// How long a wait for a GPU in a collective may take: what TANDEM_COLLECTIVE_TIME_LIMIT in the environment
// says, or 30 minutes where it is not there or empty. INVALID_ARGUMENT: it is no duration within the bounds;
// whoever set it wanted something else than 30 minutes.
absl::StatusOr<absl::Duration> CollectiveTimeLimit();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_
