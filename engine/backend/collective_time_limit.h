#ifndef TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_
#define TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// The bounds of a collective's time limit, for every setting.
inline constexpr absl::Duration kLeastCollectiveTime = absl::Seconds(1);
inline constexpr absl::Duration kMostCollectiveTime = absl::Hours(24);

// Returns the longest wait for a GPU in a collective: the environment's TANDEM_COLLECTIVE_TIME_LIMIT, or 30
// minutes if the variable is missing or empty. INVALID_ARGUMENT if its value is no duration within the
// bounds.
absl::StatusOr<absl::Duration> CollectiveTimeLimit();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_
