#ifndef TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_
#define TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tandem {

// How long a wait for a GPU in a collective may take: what TANDEM_COLLECTIVE_TIME_LIMIT in the environment
// says, or 30 minutes where it is not there. INVALID_ARGUMENT: it is there and is no duration above 0;
// whoever set it wanted something else than 30 minutes.
absl::StatusOr<absl::Duration> CollectiveTimeLimit();

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_COLLECTIVE_TIME_LIMIT_H_
