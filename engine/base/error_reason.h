#ifndef TANDEM_ENGINE_BASE_ERROR_REASON_H_
#define TANDEM_ENGINE_BASE_ERROR_REASON_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// `status` with a reason for programs, in UPPER_SNAKE_CASE, such as "JOB_NOT_FOUND"; a client gets it as
// google.rpc.ErrorInfo.reason. Replaces one that is there. OK stays as it is.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// The reason that a status carries; empty where it has none.
std::string GetReason(const absl::Status& status);

// `status` with more for programs about its reason: a client gets it as google.rpc.ErrorInfo.metadata.
// Replaces what is there. OK stays as it is.
absl::Status WithReasonDetails(absl::Status status, const std::map<std::string, std::string>& details);

// What WithReasonDetails gave; empty where there is none.
std::map<std::string, std::string> GetReasonDetails(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_ERROR_REASON_H_
