#ifndef TANDEM_SERVER_RPC_CALLER_OF_H_
#define TANDEM_SERVER_RPC_CALLER_OF_H_

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "server/auth/authenticator.h"

namespace tandem {

// Who makes the call. The transport has let it in; UNAUTHENTICATED where its token was revoked since.
absl::StatusOr<Caller> CallerOf(const Authenticator& authenticator,
                                const grpc::CallbackServerContext& context);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALLER_OF_H_
