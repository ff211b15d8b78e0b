#ifndef TANDEM_ENGINE_BASE_ERROR_REASON_H_
#define TANDEM_ENGINE_BASE_ERROR_REASON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// `status` with a reason for programs, in UPPER_SNAKE_CASE, such as "JOB_NOT_FOUND"; a client gets it as
// google.rpc.ErrorInfo.reason. Replaces one that is there. OK stays as it is.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// The reason that a status carries; empty where it has none.
std::string GetReason(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_ERROR_REASON_H_
