#ifndef TANDEM_SERVER_RPC_GRPC_STATUS_H_
#define TANDEM_SERVER_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tandem {

// The status that a client gets. An error has a google.rpc.Status as its details: an ErrorInfo of the domain
// "tandem", whose reason is that of WithReason or else the code's name, a BadRequest where the status
// names fields at fault, and a RetryInfo where waiting helps (WithRetryDelay). Both message and details are
// cut to what a client takes in its headers (8 KiB by default); the last violation then says how many more
// there are.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_GRPC_STATUS_H_
