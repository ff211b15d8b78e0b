#ifndef TANDEM_ENGINE_BASE_ERROR_REASON_H_
#define TANDEM_ENGINE_BASE_ERROR_REASON_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Returns `status` with a reason for programs, in UPPER_SNAKE_CASE, such as "JOB_NOT_FOUND". A client
// receives the reason as google.rpc.ErrorInfo.reason. Replaces an earlier reason. OK is returned unchanged.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// Returns the reason of `status`, or "" if it has none.
std::string GetReason(const absl::Status& status);

// Returns `status` with details of its reason, for programs. A client receives the details as
// google.rpc.ErrorInfo.metadata. Replaces earlier details. OK is returned unchanged.
absl::Status WithReasonDetails(absl::Status status, const std::map<std::string, std::string>& details);

// Returns the details of WithReasonDetails, or an empty map if `status` has none.
std::map<std::string, std::string> GetReasonDetails(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_ERROR_REASON_H_
