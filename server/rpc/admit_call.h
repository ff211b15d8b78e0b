#ifndef TANDEM_SERVER_RPC_ADMIT_CALL_H_
#define TANDEM_SERVER_RPC_ADMIT_CALL_H_

#include <grpcpp/server_context.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/auth/call_limits.h"
#include "server/auth/caller.h"
#include "server/rpc/call_log.h"
#include "server/rpc/rpc_context.h"
#include "server/rpc/unary_counts.h"

namespace tandem {

// Who makes a call of `method` ("CreateJob"), where it may go on: every call of the project's own services
// comes through here before its handler sees it. The log learns who it is. UNAVAILABLE: the daemon stops.
// UNAUTHENTICATED: the transport let the call in, but its token was revoked or expired since.
// PERMISSION_DENIED: the caller's role is not enough. RESOURCE_EXHAUSTED: the user calls too often.
absl::StatusOr<Caller> AdmitCall(const RpcContext& rpc, absl::string_view method,
                                 const grpc::CallbackServerContext& context, CallLog* log);

// The same of a call that is a stream: `place` is then the caller's among its open streams.
// RESOURCE_EXHAUSTED, too: too many are open.
absl::StatusOr<Caller> AdmitStream(const RpcContext& rpc, absl::string_view method,
                                   const grpc::CallbackServerContext& context, CallLog* log,
                                   std::unique_ptr<CallLimits::Stream>* place);

// The same of a unary call: `place` then counts it.
// RESOURCE_EXHAUSTED, too: the user or the connection has too many, or too many answers that are not read.
absl::StatusOr<Caller> AdmitUnary(const RpcContext& rpc, absl::string_view method,
                                  const grpc::CallbackServerContext& context, CallLog* log,
                                  UnaryCounts* counts, std::unique_ptr<UnaryCounts::Place>* place);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_ADMIT_CALL_H_
