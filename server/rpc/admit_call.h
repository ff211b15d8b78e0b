#ifndef TANDEM_SERVER_RPC_ADMIT_CALL_H_
#define TANDEM_SERVER_RPC_ADMIT_CALL_H_

#include <grpcpp/server_context.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/auth/call_limits.h"
#include "server/auth/caller.h"
#include "server/rpc/call_log.h"
#include "server/rpc/call_parts.h"
#include "server/rpc/unary_counts.h"

namespace tandem {

// Returns the caller of `method` ("CreateJob") if the call may continue. Every call of the project's own
// services passes here before its handler runs. Tells the log who calls. UNAVAILABLE: the daemon stops.
// UNAUTHENTICATED: the token was revoked or expired after the transport accepted the call. PERMISSION_DENIED:
// the caller's role is too low. RESOURCE_EXHAUSTED: the user calls too often.
absl::StatusOr<Caller> AdmitCall(const CallParts& parts, absl::string_view method,
                                 const grpc::CallbackServerContext& context, CallLog* log);

// The same for a stream. `place` counts the stream as one of the caller's open streams. RESOURCE_EXHAUSTED
// also if the caller has too many.
absl::StatusOr<Caller> AdmitStream(const CallParts& parts, absl::string_view method,
                                   const grpc::CallbackServerContext& context, CallLog* log,
                                   std::unique_ptr<CallLimits::Stream>* place);

// The same for a unary call. `place` counts the call. RESOURCE_EXHAUSTED also if the user or the connection
// has too many calls or too many bytes of unread answers.
absl::StatusOr<Caller> AdmitUnary(const CallParts& parts, absl::string_view method,
                                  const grpc::CallbackServerContext& context, CallLog* log,
                                  std::unique_ptr<UnaryCounts::Place>* place);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_ADMIT_CALL_H_
