#ifndef TANDEM_SERVER_RPC_CALL_FRAME_H_
#define TANDEM_SERVER_RPC_CALL_FRAME_H_

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
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
#include "server/events/item_source.h"
#include "server/rpc/active_streams.h"
#include "server/rpc/admit_call.h"
#include "server/rpc/call_log.h"
#include "server/rpc/call_parts.h"
#include "server/rpc/deferred_source.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/request_bytes.h"

// The common parts of all methods: the call's id, its line in the log, the caller and the caller's rights,
// and the conversion of absl::Status for the client. Also serves streams of responses. Authentication runs
// before this for all services (server/auth). Handlers know nothing of gRPC.

namespace tandem {

namespace internal {

// Sets the call's resource if the message names one.
template <typename Message>
void SetResource(const Message& message, CallLog* log) {
  std::string name;
  if constexpr (requires { message.name(); }) name = message.name();
  if constexpr (requires { message.job().name(); }) name = message.job().name();
  if constexpr (requires { message.token().user(); }) name = absl::StrCat("tokens/", message.token().user());
  if (!name.empty()) log->SetResource(name);
}

inline CallLog StartCall(const CallParts& parts, absl::string_view method,
                         grpc::CallbackServerContext* context) {
  CallLog log(method, context->peer(), &parts.hooks);
  context->AddInitialMetadata("tandem-call-id", log.call_id());
  // Lets a client compute the difference between its clock and the daemon's.
  context->AddInitialMetadata("tandem-time-ms", absl::StrCat(absl::ToUnixMillis(absl::Now())));
  return log;
}

// Takes a request's bytes from gRPC, which would otherwise keep them until the call's end.
inline grpc::ByteBuffer TakeBytes(const grpc::ByteBuffer* request) {
  grpc::ByteBuffer bytes;
  // gRPC made the bytes for this call alone.
  bytes.Swap(const_cast<grpc::ByteBuffer*>(request));
  return bytes;
}

// Returns the bytes of a message, for gRPC to send.
template <typename Message>
grpc::ByteBuffer BytesOf(const Message& message) {
  grpc::ByteBuffer bytes;
  bool is_own = false;
  grpc::SerializationTraits<Message>::Serialize(message, &bytes, &is_own);
  return bytes;
}

}  // namespace internal

// A call with a stream, without the stream's direction. `Reactor` is gRPC's base class. Lives until gRPC has
// called OnDone and no callback holds `self()`.
template <typename Reactor>
class StreamCall : public Reactor,
                   public ActiveStreams::Stream,
                   public std::enable_shared_from_this<StreamCall<Reactor>> {
 public:
  // `place` is the caller's place among its open streams until the call is done.
  StreamCall(CallLog log, std::unique_ptr<CallLimits::Stream> place, ActiveStreams* streams,
             grpc::CallbackServerContext* context)
      : log_(std::move(log)), place_(std::move(place)), streams_(streams), context_(context) {}

  void Cut() override {
    MutexLock lock(&mutex_);
    // gRPC keeps the context until OnDone returns. TryCancel's effects come on other threads.
    if (!done_) context_->TryCancel();
  }

  // The client may read and send slowly.
  bool IsOverdue(absl::Duration) override { return false; }

  void OnCancel() override { this->End(absl::CancelledError("the client cancelled the call")); }

  void OnDone() override {
    absl::Status status;
    int64_t messages;
    {
      MutexLock lock(&mutex_);
      done_ = true;
      status = end_.value_or(absl::OkStatus());
      messages = messages_;
    }
    if (number_ != 0) streams_->Remove(number_);
    place_ = nullptr;
    log_.Finish(status, messages);
    // If the source or sink still owes a callback, it keeps this object alive.
    std::shared_ptr<StreamCall> last = std::move(self_);
  }

 protected:
  std::shared_ptr<StreamCall> self() { return this->shared_from_this(); }

  // Call first, before the method returns.
  void KeepUntilDone() { self_ = self(); }

  // Adds the call to the open streams, which may End it at once.
  void Register(const Caller& caller) { number_ = streams_->Add(self(), caller); }

  // Ends the call. Only the first call counts.
  void FinishOnce(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      if (std::exchange(finished_, true)) return;
      end_ = status;
    }
    this->Finish(ToGrpcStatus(status));
  }

  CallLog log_;

  Mutex mutex_;
  // True while gRPC writes a response, or while the sink takes a request.
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  // The number of responses that were written, or of requests that were read.
  int64_t messages_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);

 private:
  std::unique_ptr<CallLimits::Stream> place_;
  ActiveStreams* const streams_;
  grpc::CallbackServerContext* const context_;
  int64_t number_ = 0;  // Set before the first callback.
  std::shared_ptr<StreamCall> self_;

  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

// Writes the responses of a source, one at a time. Lives until gRPC and the source are both done with it.
template <typename Response>
class StreamReactor final : public StreamCall<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  using StreamCall::StreamCall;

  // Call once, with the handler's result. If it is an error, `caller` may be unset.
  void Start(absl::StatusOr<std::unique_ptr<ItemSource<Response>>> source, const Caller& caller) {
    KeepUntilDone();
    if (!source.ok()) {
      FinishOnce(source.status());
      return;
    }
    source_ = *std::move(source);
    StartSendInitialMetadata();
    Register(caller);
    Pull();
  }

  void End(const absl::Status& status) override {
    bool finish = false;
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      end_ = status;
      // If a write is in flight, OnWriteDone finishes the stream.
      finish = !busy_;
    }
    if (source_ != nullptr) source_->Cancel();
    if (finish) FinishOnce(status);
  }

  void OnWriteDone(bool ok) override {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mutex_);
      busy_ = false;
      if (ok) ++messages_;
      if (!ok && !end_.has_value()) end_ = absl::CancelledError("the client cancelled the call");
      end = end_;
    }
    if (end.has_value()) {
      FinishOnce(*end);
    } else {
      Pull();
    }
  }

 private:
  void Pull() {
    source_->Next(
        [this, self = self()](typename ItemSource<Response>::Result result) { OnNext(std::move(result)); });
  }

  void OnNext(typename ItemSource<Response>::Result result) {
    absl::Status end;
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      if (result.ok() && result->has_value()) {
        response_ = internal::BytesOf(**result);
        busy_ = true;
      } else {
        end_ = end = result.status();
      }
    }
    // Unlocked, because gRPC may call back at once.
    if (result.ok() && result->has_value()) {
      StartWrite(&response_);
    } else {
      FinishOnce(end);
    }
  }

  std::unique_ptr<ItemSource<Response>> source_;  // Set before the first callback.
  grpc::ByteBuffer response_;                     // Written only while no write is in flight.
};

// A handler (see handlers.h) with its dependencies. Returns a source or an error.
template <typename Request, typename Response>
using StreamHandler =
    std::function<absl::StatusOr<std::unique_ptr<ItemSource<Response>>>(const Caller&, const Request&)>;

// The options of a method that streams its responses.
template <typename Request>
struct StreamOptions {
  // A request has at most so many bytes. A request above kSmallRequestBytes is parsed in its user's turn.
  int64_t most_bytes = kSmallRequestBytes;
  // Runs on a small request before its handler. Null: does nothing.
  std::function<void(grpc::CallbackServerContext*, Request*)> prepare = nullptr;
};

// Serves a stream of responses. `parts` must outlive the call.
template <typename Request, typename Response>
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServeStream(const CallParts& parts, absl::string_view method,
                                                        const StreamOptions<Request>& options,
                                                        grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        const StreamHandler<Request, Response>& handler) {
  CallLog log = internal::StartCall(parts, method, context);
  grpc::ByteBuffer bytes = internal::TakeBytes(request);
  const auto size = static_cast<int64_t>(bytes.Length());
  const bool is_small = size <= kSmallRequestBytes;
  Request small;
  absl::Status parsed;
  if (is_small) parsed = ParseRequest(std::move(bytes), options.most_bytes, &small);
  internal::SetResource(small, &log);
  std::unique_ptr<CallLimits::Stream> place;
  const absl::StatusOr<Caller> caller = AdmitStream(parts, method, *context, &log, &place);
  auto reactor = std::make_shared<StreamReactor<Response>>(std::move(log), std::move(place),
                                                           &parts.calls->streams, context);
  if (!caller.ok()) {
    reactor->Start(caller.status(), Caller());
  } else if (!parsed.ok()) {
    reactor->Start(parsed, *caller);
  } else if (is_small) {
    if (options.prepare != nullptr) options.prepare(context, &small);
    reactor->Start(handler(*caller, small), *caller);
  } else {
    reactor->Start(
        std::make_unique<DeferredSource<Response>>(
            parts.pool, caller->user, size,
            [handler = handler, most_bytes = options.most_bytes, caller = *caller,
             bytes = std::move(bytes)]() mutable -> absl::StatusOr<std::unique_ptr<ItemSource<Response>>> {
              Request large;
              absl::Status parsed = ParseRequest(std::exchange(bytes, {}), most_bytes, &large);
              if (!parsed.ok()) return parsed;
              return handler(caller, large);
            }),
        *caller);
  }
  return reactor.get();
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CALL_FRAME_H_
