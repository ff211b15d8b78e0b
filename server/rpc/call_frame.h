#ifndef TANDEM_SERVER_RPC_CALL_FRAME_H_
#define TANDEM_SERVER_RPC_CALL_FRAME_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/rpc/active_streams.h"
#include "server/rpc/admit_call.h"
#include "server/rpc/call_log.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/response_source.h"
#include "server/rpc/rpc_context.h"

// What all methods have in common: a call's id and its line in the log, who calls and whether that may be,
// and the way from absl::Status to the client; and the calls that are streams of responses. Authentication
// comes before this, for all services alike (server/auth). Handlers know no gRPC.

namespace tandem {

namespace internal {

// Where the message names what the call is about.
template <typename Message>
void SetResource(const Message& message, CallLog* log) {
  std::string name;
  if constexpr (requires { message.name(); }) name = message.name();
  if constexpr (requires { message.job().name(); }) name = message.job().name();
  if constexpr (requires { message.token().user(); }) name = absl::StrCat("tokens/", message.token().user());
  if (!name.empty()) log->SetResource(name);
}

template <typename Request>
CallLog StartCall(const RpcContext& rpc, absl::string_view method, grpc::CallbackServerContext* context,
                  const Request& request) {
  CallLog log(method, context->peer(), &rpc.calls);
  SetResource(request, &log);
  context->AddInitialMetadata("tandem-call-id", log.call_id());
  // So that a client can tell how far its clock is from the daemon's.
  context->AddInitialMetadata("tandem-time-ms", absl::StrCat(absl::ToUnixMillis(absl::Now())));
  return log;
}

}  // namespace internal

// Writes what a source gives, one response at a time. Lives until both gRPC and the source are done with it.
template <typename Response>
class StreamReactor : public grpc::ServerWriteReactor<Response>,
                      public ActiveStreams::Stream,
                      public std::enable_shared_from_this<StreamReactor<Response>> {
 public:
  StreamReactor(CallLog log, ActiveStreams* streams, grpc::CallbackServerContext* context)
      : log_(std::move(log)), streams_(streams), context_(context) {}

  // Keeps the caller's place among its open streams until the call is done. Before Start.
  void Hold(std::unique_ptr<CallLimits::Stream> place) { place_ = std::move(place); }

  // Call once, with what the handler returned for the caller. Without a source the caller may be nobody.
  void Start(absl::StatusOr<std::unique_ptr<ResponseSource<Response>>> source, const Caller& caller) {
    self_ = this->shared_from_this();
    if (!source.ok()) {
      FinishOnce(source.status());
      return;
    }
    source_ = *std::move(source);
    this->StartSendInitialMetadata();
    number_ = streams_->Add(this->shared_from_this(), caller);
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

  void Cut() override {
    MutexLock lock(&mutex_);
    // gRPC keeps the context until OnDone has returned; what TryCancel sets off comes on other threads.
    if (!done_) context_->TryCancel();
  }

  // A watcher may read whenever it likes.
  bool IsOverdue(absl::Duration) override { return false; }

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
      done_ = true;
      status = end_.value_or(absl::OkStatus());
      responses = responses_;
    }
    if (number_ != 0) streams_->Remove(number_);
    place_ = nullptr;
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
  grpc::CallbackServerContext* const context_;
  std::unique_ptr<ResponseSource<Response>> source_;  // Set before the first callback.
  std::unique_ptr<CallLimits::Stream> place_;         // Likewise.
  int64_t number_ = 0;
  std::shared_ptr<StreamReactor> self_;
  Response response_;  // Written to while no write is in flight.

  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t responses_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// Serves a stream of responses: `handler(caller, request)` gives its source, or an error.
template <typename Response, typename Request, typename Handler>
grpc::ServerWriteReactor<Response>* ServeStream(const RpcContext& rpc, ActiveStreams* streams,
                                                absl::string_view method,
                                                grpc::CallbackServerContext* context, const Request* request,
                                                Handler&& handler) {
  CallLog log = internal::StartCall(rpc, method, context, *request);
  std::unique_ptr<CallLimits::Stream> place;
  const absl::StatusOr<Caller> caller = AdmitStream(rpc, method, *context, &log, &place);
  auto reactor = std::make_shared<StreamReactor<Response>>(std::move(log), streams, context);
  reactor->Hold(std::move(place));
  if (caller.ok()) {
    reactor->Start(handler(*caller, *request), *caller);
  } else {
    reactor->Start(caller.status(), Caller());
  }
  return reactor.get();
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_FRAME_H_
