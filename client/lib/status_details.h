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

// One thing that is wrong with a request.
struct FieldViolation {
  // The field's path in the request, such as "spec.model.layers[2].dense.units".
  std::string field;
  // What is wrong with it.
  std::string description;
};

// The same code and message; the details that travel in "grpc-status-details-bin" become payloads under their
// type's URL.
absl::Status FromGrpcStatus(const grpc::Status& status);

// What google.rpc.BadRequest in the status's payloads lists, in its order; empty where there is none.
std::vector<FieldViolation> FieldViolations(const absl::Status& status);

// The reason that google.rpc.ErrorInfo in the status's payloads gives, such as "JOB_TERMINAL"; empty where
// there is none.
std::string ErrorReason(const absl::Status& status);

// What google.rpc.ErrorInfo says more, such as "bytes_done"; empty where there is nothing.
std::map<std::string, std::string> ErrorMetadata(const absl::Status& status);

// After how long the daemon wants the call, which it refused for now, to be made again; nothing where it did
// not say, or where that is longer than anybody waits (10 s).
absl::optional<absl::Duration> ShortRetryDelay(const absl::Status& status);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_STATUS_DETAILS_H_
