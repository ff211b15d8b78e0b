#ifndef TANDEM_SERVER_RPC_SINK_FRAME_H_
#define TANDEM_SERVER_RPC_SINK_FRAME_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "server/rpc/call_frame.h"
#include "server/rpc/request_sink.h"

// Like call_frame.h, for methods to which clients stream.

namespace tandem {

// Reads a client's requests into a sink, one at a time. Lives until gRPC and the sink are both done with it.
template <typename Request, typename Response>
class SinkReactor : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                    public ActiveStreams::Stream,
                    public std::enable_shared_from_this<SinkReactor<Request, Response>> {
 public:
  SinkReactor(CallLog log, ActiveStreams* streams, grpc::CallbackServerContext* context,
              grpc::ByteBuffer* response)
      : log_(std::move(log)), streams_(streams), context_(context), response_(response) {}

  // Keeps the caller's place among its open streams until the call is done. Call before Start.
  void Hold(std::unique_ptr<CallLimits::Stream> place) { place_ = std::move(place); }

  // Call once. If `sink` is null, the call ends with the caller's status.
  void Start(std::unique_ptr<RequestSink<Request, Response>> sink, const absl::StatusOr<Caller>& caller) {
    self_ = this->shared_from_this();
    if (sink == nullptr) {
      FinishOnce(caller.status());
      return;
    }
    sink_ = std::move(sink);
    // No callback runs before the method returns.
    this->StartRead(&bytes_);
    number_ = streams_->Add(this->shared_from_this(), *caller);
  }

  void End(const absl::Status& status) override {
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      end_ = status;
      // If the sink is busy, OnTaken abandons it afterwards.
      if (busy_) return;
    }
    sink_->Abandon();
    FinishOnce(status);
  }

  void Cut() override {
    MutexLock lock(&mutex_);
    // gRPC keeps the context until OnDone returns. TryCancel's effects come on other threads.
    if (!done_) context_->TryCancel();
  }

  // The client may send slowly.
  bool IsOverdue(absl::Duration) override { return false; }

  void OnCancel() override { End(absl::CancelledError("the client went away")); }

  void OnReadDone(bool ok) override {
    bool is_first = false;
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      busy_ = true;
      if (ok) is_first = ++requests_ == 1;
    }
    if (ok) {
      Request request;
      absl::Status parsed =
          ParseRequest(std::exchange(bytes_, {}), kMostRequestBytes, &request, kMostStreamedFields);
      if (!parsed.ok()) return OnTaken(parsed);
      // Received data stays, however the call ends. The first request names its resource.
      if (is_first) internal::SetResource(request, &log_);
      sink_->Take(std::move(request),
                  [self = this->shared_from_this()](const absl::Status& status) { self->OnTaken(status); });
    } else {
      sink_->Finish([self = this->shared_from_this()](absl::StatusOr<Response> response) {
        if (response.ok()) {
          *self->response_ = internal::BytesOf(*response);
          internal::SetResource(*response, &self->log_);
        }
        self->FinishOnce(response.status());
      });
    }
  }

  void OnDone() override {
    absl::Status status;
    int64_t requests;
    {
      MutexLock lock(&mutex_);
      done_ = true;
      status = end_.value_or(absl::OkStatus());
      requests = requests_;
    }
    if (number_ != 0) streams_->Remove(number_);
    place_ = nullptr;
    log_.Finish(status, requests);
    // If the sink still owes a callback, it keeps this object alive.
    std::shared_ptr<SinkReactor> last = std::move(self_);
  }

 private:
  void OnTaken(const absl::Status& status) {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mutex_);
      busy_ = false;
      if (!status.ok() && !end_.has_value()) end_ = status;
      end = end_;
    }
    if (end.has_value()) {
      sink_->Abandon();
      FinishOnce(*end);
    } else {
      this->StartRead(&bytes_);
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

  CallLog log_;
  ActiveStreams* const streams_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const response_;
  std::unique_ptr<RequestSink<Request, Response>> sink_;  // Set before the first callback.
  std::unique_ptr<CallLimits::Stream> place_;             // The same.
  int64_t number_ = 0;
  std::shared_ptr<SinkReactor> self_;
  grpc::ByteBuffer bytes_;  // Read into only while the sink is not busy.

  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// Serves a stream of requests. The handler (see handlers.h) returns the sink for the requests.
template <typename Request, typename Response>
grpc::ServerReadReactor<grpc::ByteBuffer>* ServeSink(
    const RpcContext& rpc, ActiveStreams* streams, absl::string_view method,
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
    std::unique_ptr<RequestSink<Request, Response>> (*handler)(const RpcContext&, Caller)) {
  CallLog log = internal::StartCall(rpc, method, context);
  std::unique_ptr<CallLimits::Stream> place;
  const absl::StatusOr<Caller> caller = AdmitStream(rpc, method, *context, &log, &place);
  auto reactor = std::make_shared<SinkReactor<Request, Response>>(std::move(log), streams, context, response);
  reactor->Hold(std::move(place));
  reactor->Start(caller.ok() ? handler(rpc, *caller) : nullptr, caller);
  return reactor.get();
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_SINK_FRAME_H_
