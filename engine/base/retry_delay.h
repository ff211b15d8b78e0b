#ifndef TANDEM_ENGINE_BASE_RETRY_DELAY_H_
#define TANDEM_ENGINE_BASE_RETRY_DELAY_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace tandem {

// Returns `status` with the delay after which the same call may succeed. Use it for errors that a wait mends.
// A client receives the delay as google.rpc.RetryInfo. Replaces an earlier delay. OK is returned unchanged.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// Returns the delay of WithRetryDelay, or nothing if `status` has none.
absl::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_RETRY_DELAY_H_
