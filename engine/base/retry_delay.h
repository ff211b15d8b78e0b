#ifndef TANDEM_ENGINE_BASE_RETRY_DELAY_H_
#define TANDEM_ENGINE_BASE_RETRY_DELAY_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace tandem {

// `status` with the time after which the same call may succeed; a client gets it as google.rpc.RetryInfo.
// For errors that waiting mends. Replaces one that is there. OK stays as it is.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);

// What WithRetryDelay gave; nothing where waiting does not help, or nobody knows.
absl::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_RETRY_DELAY_H_
