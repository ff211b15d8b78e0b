#ifndef TANDEM_SERVER_RPC_CALL_FRAME_H_
#define TANDEM_SERVER_RPC_CALL_FRAME_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/rpc/active_streams.h"
#include "server/rpc/call_log.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/response_source.h"
#include "server/rpc/rpc_context.h"

// What all methods have in common: a call's id and its line in the log, the refusal of calls while the daemon
// stops, and the way from absl::Status to the client. Authentication comes before this, for all services
// alike (server/auth). Handlers know no gRPC.

namespace tandem {

// Answers a unary call, once, from any thread.
template <typename Response>
using Reply = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

namespace internal {

template <typename Request>
CallLog StartCall(const RpcContext& rpc, absl::string_view method, grpc::CallbackServerContext* context,
                  const Request& request) {
  CallLog log(method, context->peer(), &rpc.calls);
  if constexpr (requires { request.name(); }) log.SetJob(request.name());
  context->AddInitialMetadata("tandem-call-id", log.call_id());
  // So that a client can tell how far its clock is from the daemon's.
  context->AddInitialMetadata("tandem-time-ms", absl::StrCat(absl::ToUnixMillis(absl::Now())));
  return log;
}

}  // namespace internal

// Serves a unary call: `handler(request, reply)` is called unless the daemon stops.
template <typename Request, typename Response, typename Handler>
grpc::ServerUnaryReactor* ServeUnary(const RpcContext& rpc, absl::string_view method,
                                     grpc::CallbackServerContext* context, const Request* request,
                                     Response* response, Handler&& handler) {
  auto log = std::make_unique<CallLog>(internal::StartCall(rpc, method, context, *request));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Reply<Response> reply = [reactor, response, log = std::move(log)](absl::StatusOr<Response> result) {
    if (result.ok()) {
      *response = *std::move(result);
      if constexpr (requires { response->name(); }) log->SetJob(response->name());
    }
    log->Finish(result.status());
    reactor->Finish(ToGrpcStatus(result.status()));
  };
  if (absl::Status status = rpc.lifecycle->CheckServing(); !status.ok()) {
    reply(std::move(status));
  } else {
    handler(*request, std::move(reply));
  }
  return reactor;
}

// Writes what a source gives, one response at a time. Lives until both gRPC and the source are done with it.
template <typename Response>
class StreamReactor : public grpc::ServerWriteReactor<Response>,
                      public ActiveStreams::Stream,
                      public std::enable_shared_from_this<StreamReactor<Response>> {
 public:
  StreamReactor(CallLog log, ActiveStreams* streams) : log_(std::move(log)), streams_(streams) {}

  // Call once, with what the handler returned.
  void Start(absl::StatusOr<std::unique_ptr<ResponseSource<Response>>> source) {
    self_ = this->shared_from_this();
    if (!source.ok()) {
      FinishOnce(source.status());
      return;
    }
    source_ = *std::move(source);
    this->StartSendInitialMetadata();
    number_ = streams_->Add(this->shared_from_this());
    Pull();
  }

  void End(const absl::Status& status) override {
    bool finish = false;
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      end_ = status;
      // A write in flight ends first: OnWriteDone goes on from there.
      finish = !writing_;
    }
    if (source_ != nullptr) source_->Cancel();
    if (finish) FinishOnce(status);
  }

  void OnCancel() override { End(absl::CancelledError("the client went away")); }

  void OnWriteDone(bool ok) override {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      if (ok) ++responses_;
      if (!ok && !end_.has_value()) end_ = absl::CancelledError("the client went away");
      end = end_;
    }
    if (end.has_value()) {
      FinishOnce(*end);
    } else {
      Pull();
    }
  }

  void OnDone() override {
    absl::Status status;
    int64_t responses;
    {
      MutexLock lock(&mutex_);
      status = end_.value_or(absl::OkStatus());
      responses = responses_;
    }
    if (number_ != 0) streams_->Remove(number_);
    log_.Finish(status, responses);
    // A source that still owes a callback keeps this alive until then.
    std::shared_ptr<StreamReactor> last = std::move(self_);
  }

 private:
  void Pull() {
    source_->Next([self = this->shared_from_this()](typename ResponseSource<Response>::Result result) {
      self->OnNext(std::move(result));
    });
  }

  void OnNext(typename ResponseSource<Response>::Result result) {
    absl::Status end;
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      if (result.ok() && result->has_value()) {
        response_ = *std::move(*result);
        writing_ = true;
      } else {
        end_ = end = result.status();
      }
    }
    // Without the lock: gRPC may call back at once.
    if (result.ok() && result->has_value()) {
      this->StartWrite(&response_);
    } else {
      FinishOnce(end);
    }
  }

  void FinishOnce(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      if (std::exchange(finished_, true)) return;
      end_ = status;
    }
    this->Finish(ToGrpcStatus(status));
  }

  const CallLog log_;
  ActiveStreams* const streams_;
  std::unique_ptr<ResponseSource<Response>> source_;  // Set before the first callback.
  int64_t number_ = 0;
  std::shared_ptr<StreamReactor> self_;
  Response response_;  // Written to while no write is in flight.

  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t responses_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// Serves a stream of responses: `handler(request)` gives its source, or an error.
template <typename Response, typename Request, typename Handler>
grpc::ServerWriteReactor<Response>* ServeStream(const RpcContext& rpc, ActiveStreams* streams,
                                                absl::string_view method,
                                                grpc::CallbackServerContext* context, const Request* request,
                                                Handler&& handler) {
  auto reactor =
      std::make_shared<StreamReactor<Response>>(internal::StartCall(rpc, method, context, *request), streams);
  if (absl::Status status = rpc.lifecycle->CheckServing(); !status.ok()) {
    reactor->Start(std::move(status));
  } else {
    reactor->Start(handler(*request));
  }
  return reactor.get();
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_FRAME_H_
