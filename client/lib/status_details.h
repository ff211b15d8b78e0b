#ifndef TANDEM_CLIENT_LIB_STATUS_DETAILS_H_
#define TANDEM_CLIENT_LIB_STATUS_DETAILS_H_

#include <grpcpp/support/status.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace tandem::client {

// A wrong field of a request.
struct FieldViolation {
  // The field's path in the request, such as "spec.model.layers[2].dense.units".
  std::string field;
  // The problem with the field.
  std::string description;
};

// Converts a status, with code and message. The details of "grpc-status-details-bin" become payloads under
// their type's URL.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Returns the violations of the status's google.rpc.BadRequest, in order. Empty if there is none.
std::vector<FieldViolation> FieldViolations(const absl::Status& status);

// Returns the reason of the status's google.rpc.ErrorInfo, such as "JOB_TERMINAL". Empty if there is none.
std::string ErrorReason(const absl::Status& status);

// Returns the metadata of the status's google.rpc.ErrorInfo, such as "bytes_done". Empty if there is none.
std::map<std::string, std::string> ErrorMetadata(const absl::Status& status);

// Returns the delay after which the daemon asks the client to repeat a refused call. Unset if the status has
// no delay, or if the delay is longer than 10 s.
absl::optional<absl::Duration> ShortRetryDelay(const absl::Status& status);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_STATUS_DETAILS_H_
