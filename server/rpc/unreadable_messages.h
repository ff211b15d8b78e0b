#ifndef TANDEM_SERVER_RPC_UNREADABLE_MESSAGES_H_
#define TANDEM_SERVER_RPC_UNREADABLE_MESSAGES_H_

#include <grpcpp/server_builder.h>

namespace tandem {

// Has a server answer INVALID_ARGUMENT, with a text, to messages that are none of their method, or are nested
// too deeply. gRPC itself answers UNIMPLEMENTED without a text.
void ExplainUnreadableMessages(grpc::ServerBuilder* builder);

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_UNREADABLE_MESSAGES_H_
