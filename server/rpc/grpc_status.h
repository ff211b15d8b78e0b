#ifndef TANDEM_SERVER_RPC_GRPC_STATUS_H_
#define TANDEM_SERVER_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tandem {

// Returns the status for the client. An error's details are a google.rpc.Status. It has an ErrorInfo of the
// domain "tandem" with WithReason's reason or the code's name. It has a BadRequest if the status names wrong
// fields, and a RetryInfo if waiting helps (WithRetryDelay). Message and details are cut to the size of a
// client's headers (8 KiB by default). The last violation then gives the number of omitted ones.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_GRPC_STATUS_H_
