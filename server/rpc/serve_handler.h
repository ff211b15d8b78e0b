#ifndef TANDEM_SERVER_RPC_SERVE_HANDLER_H_
#define TANDEM_SERVER_RPC_SERVE_HANDLER_H_

#include <utility>

#include "server/rpc/rpc_context.h"
#include "server/rpc/unary_frame.h"

namespace tandem {

// Serves a unary call by its handler (see handlers.h). The context outlives the call.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ServeHandler(const RpcContext& rpc, OpenCalls* calls, absl::string_view method,
                                       grpc::CallbackServerContext* context, const Request* request,
                                       Response* response,
                                       void (*handler)(const RpcContext&, const Request&, Reply<Response>)) {
  return ServeUnary(rpc, calls, method, context, request, response,
                    [&rpc, handler](const Caller&, const Request& r, Reply<Response> reply) {
                      handler(rpc, r, std::move(reply));
                    });
}

// For methods that depend on who calls.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ServeHandler(const RpcContext& rpc, OpenCalls* calls, absl::string_view method,
                                       grpc::CallbackServerContext* context, const Request* request,
                                       Response* response,
                                       void (*handler)(const RpcContext&, const Caller&, const Request&,
                                                       Reply<Response>)) {
  return ServeUnary(rpc, calls, method, context, request, response,
                    [&rpc, handler](const Caller& caller, const Request& r, Reply<Response> reply) {
                      handler(rpc, caller, r, std::move(reply));
                    });
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_SERVE_HANDLER_H_
