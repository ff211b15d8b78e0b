#ifndef TANDEM_SERVER_RPC_METHOD_TABLE_H_
#define TANDEM_SERVER_RPC_METHOD_TABLE_H_

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/rpc/call_frame.h"
#include "server/rpc/call_parts.h"
#include "server/rpc/handlers.h"
#include "server/rpc/sink_frame.h"
#include "server/rpc/unary_frame.h"

namespace tandem {

// A gRPC service that leaves messages as bytes. A service by protoc would parse each request on one of gRPC's
// few threads, before anybody checks the caller.
class MethodTable : public grpc::Service {
 public:
  // `service` is for example "tandem.v1.JobService". `parts` must outlive the service.
  MethodTable(absl::string_view service, const CallParts* parts) : service_(service), parts_(parts) {}

  // Adds a method with its handler (see handlers.h). `given` are the handler's dependencies. `method`
  // ("CreateJob") must outlive the service. Add all methods before the service is registered.
  template <typename Request, typename Response, typename... Given>
  void Unary(const char* method, void (*handler)(const Caller&, const Request&, Reply<Response>, Given...),
             std::type_identity_t<Given>... given) {
    UnaryHandler<Request, Response> bound = [handler, given...](const Caller& caller, const Request& request,
                                                                Reply<Response> reply) {
      handler(caller, request, std::move(reply), given...);
    };
    Add(method, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Bytes, Bytes>(
            [parts = parts_, method, bound = std::move(bound)](grpc::CallbackServerContext* context,
                                                               const Bytes* request, Bytes* response) {
              return ServeUnary<Request, Response>(*parts, method, context, request, response, bound);
            }));
  }

  // The same for a method that streams its responses.
  template <typename Request, typename Response, typename... Given>
  void Stream(const char* method, StreamOptions<Request> options,
              rpc::Source<Response> (*handler)(const Caller&, const Request&, Given...),
              std::type_identity_t<Given>... given) {
    StreamHandler<Request, Response> bound = [handler, given...](const Caller& caller,
                                                                 const Request& request) {
      return handler(caller, request, given...);
    };
    Add(method, grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<Bytes, Bytes>(
            [parts = parts_, method, options = std::move(options), bound = std::move(bound)](
                grpc::CallbackServerContext* context, const Bytes* request) {
              return ServeStream<Request, Response>(*parts, method, options, context, request, bound);
            }));
  }

  // The same for a method that reads a stream of requests.
  template <typename Request, typename Response, typename... Given>
  void Sink(const char* method,
            std::unique_ptr<RequestSink<Request, Response>> (*handler)(const Caller&, Given...),
            std::type_identity_t<Given>... given) {
    SinkHandler<Request, Response> bound = [handler, given...](const Caller& caller) {
      return handler(caller, given...);
    };
    Add(method, grpc::internal::RpcMethod::CLIENT_STREAMING,
        new grpc::internal::CallbackClientStreamingHandler<Bytes, Bytes>(
            [parts = parts_, method, bound = std::move(bound)](grpc::CallbackServerContext* context,
                                                               Bytes* response) {
              return ServeSink<Request, Response>(*parts, method, context, response, bound);
            }));
  }

 private:
  using Bytes = grpc::ByteBuffer;

  void Add(const char* method, grpc::internal::RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    paths_.push_back(absl::StrCat("/", service_, "/", method));
    AddMethod(new grpc::internal::RpcServiceMethod(paths_.back().c_str(), type, nullptr));
    MarkMethodRawCallback(static_cast<int>(paths_.size()) - 1, handler);
  }

  const std::string service_;
  const CallParts* const parts_;
  // gRPC keeps pointers to these strings.
  std::deque<std::string> paths_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_METHOD_TABLE_H_
