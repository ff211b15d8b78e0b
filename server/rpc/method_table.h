#ifndef TANDEM_SERVER_RPC_METHOD_TABLE_H_
#define TANDEM_SERVER_RPC_METHOD_TABLE_H_

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/rpc/call_frame.h"
#include "server/rpc/handlers.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/sink_frame.h"
#include "server/rpc/unary_frame.h"

namespace tandem {

// A gRPC service that leaves messages as bytes. A service by protoc would parse each request on one of gRPC's
// few threads, before anybody checks the caller.
class MethodTable : public grpc::Service {
 public:
  // `service` is for example "tandem.v1.JobService". The pointers must outlive the service.
  MethodTable(absl::string_view service, const RpcContext* context, OpenCalls* calls)
      : service_(service), context_(context), calls_(calls) {}

  // Adds a method with its handler (see handlers.h). `method` ("CreateJob") must outlive the service. Add all
  // methods before the service is registered.
  template <typename Request, typename Response>
  void Unary(const char* method,
             void (*handler)(const RpcContext&, const Caller&, const Request&, Reply<Response>)) {
    AddUnary<Request, Response>(method, handler);
  }
  template <typename Request, typename Response>
  void Unary(const char* method, void (*handler)(const RpcContext&, const Request&, Reply<Response>)) {
    AddUnary<Request, Response>(method, handler);
  }

  // Adds a method that streams its responses. A request has at most `most_bytes`. `prepare` as in
  // ServeStream.
  template <typename Request, typename Response>
  void Stream(const char* method,
              rpc::Source<Response> (*handler)(const RpcContext&, const Caller&, const Request&),
              int64_t most_bytes = kSmallRequestBytes) {
    AddStream<Request, Response>(method, handler, most_bytes, nullptr);
  }
  template <typename Request, typename Response>
  void Stream(const char* method, rpc::Source<Response> (*handler)(const RpcContext&, const Request&),
              void (*prepare)(const RpcContext&, grpc::CallbackServerContext*, Request*) = nullptr) {
    AddStream<Request, Response>(method, handler, kSmallRequestBytes, prepare);
  }

  // Adds a method to which clients stream requests.
  template <typename Request, typename Response>
  void Sink(const char* method,
            std::unique_ptr<RequestSink<Request, Response>> (*handler)(const RpcContext&, Caller)) {
    Add(method, grpc::internal::RpcMethod::CLIENT_STREAMING,
        new grpc::internal::CallbackClientStreamingHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
            [this, method, handler](grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
              return ServeSink<Request, Response>(*context_, &calls_->streams, method, context, response,
                                                  handler);
            }));
  }

 private:
  using Bytes = grpc::ByteBuffer;

  template <typename Request, typename Response, typename Handler>
  void AddUnary(const char* method, Handler handler) {
    Add(method, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Bytes, Bytes>(
            [this, method, handler](grpc::CallbackServerContext* context, const Bytes* request,
                                    Bytes* response) {
              return ServeUnary<Request, Response>(*context_, calls_, method, context, request, response,
                                                   handler);
            }));
  }
  template <typename Request, typename Response, typename Handler>
  void AddStream(const char* method, Handler handler, int64_t most_bytes,
                 void (*prepare)(const RpcContext&, grpc::CallbackServerContext*, Request*)) {
    Add(method, grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<Bytes, Bytes>(
            [this, method, handler, most_bytes, prepare](grpc::CallbackServerContext* context,
                                                         const Bytes* request) {
              return ServeStream<Response, Request>(*context_, &calls_->streams, method, most_bytes, context,
                                                    request, handler, prepare);
            }));
  }
  void Add(const char* method, grpc::internal::RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    paths_.push_back(absl::StrCat("/", service_, "/", method));
    AddMethod(new grpc::internal::RpcServiceMethod(paths_.back().c_str(), type, nullptr));
    MarkMethodRawCallback(static_cast<int>(paths_.size()) - 1, handler);
  }

  const std::string service_;
  const RpcContext* const context_;
  OpenCalls* const calls_;
  // gRPC keeps pointers to these strings.
  std::deque<std::string> paths_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_METHOD_TABLE_H_
