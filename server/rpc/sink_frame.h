#ifndef TANDEM_SERVER_RPC_SINK_FRAME_H_
#define TANDEM_SERVER_RPC_SINK_FRAME_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "server/rpc/call_frame.h"
#include "server/rpc/request_sink.h"

// Like call_frame.h, for methods to which clients stream.

namespace tandem {

// Reads a client's requests into a sink, one at a time. Lives until gRPC and the sink are both done with it.
template <typename Request, typename Response>
class SinkReactor final : public StreamCall<grpc::ServerReadReactor<grpc::ByteBuffer>> {
 public:
  SinkReactor(CallLog log, std::unique_ptr<CallLimits::Stream> place, ActiveStreams* streams,
              grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : StreamCall(std::move(log), std::move(place), streams, context), response_(response) {}

  // Call once. If `sink` is null, the call ends with the caller's status.
  void Start(std::unique_ptr<RequestSink<Request, Response>> sink, const absl::StatusOr<Caller>& caller) {
    KeepUntilDone();
    if (sink == nullptr) {
      FinishOnce(caller.status());
      return;
    }
    sink_ = std::move(sink);
    // No callback runs before the method returns.
    StartRead(&bytes_);
    Register(*caller);
  }

  void End(const absl::Status& status) override {
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      end_ = status;
      // If the sink is busy, OnTaken abandons it afterwards. If a read is being started, OnStarted does.
      if (busy_ || starting_ > 0) return;
    }
    sink_->Abandon();
    FinishOnce(status);
  }

  void OnReadDone(bool ok) override {
    bool is_first = false;
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) return;
      busy_ = true;
      if (ok) is_first = ++messages_ == 1;
    }
    if (ok) {
      Request request;
      absl::Status parsed =
          ParseRequest(std::exchange(bytes_, {}), kMostRequestBytes, &request, kMostStreamedFields);
      if (!parsed.ok()) return OnTaken(parsed);
      // Received data stays, however the call ends. The first request names its resource.
      if (is_first) internal::SetResource(request, &log_);
      sink_->Take(std::move(request), [this, self = self()](const absl::Status& status) { OnTaken(status); });
    } else {
      sink_->Finish([this, self = self()](absl::StatusOr<Response> response) {
        if (response.ok()) {
          *response_ = internal::BytesOf(*response);
          internal::SetResource(*response, &log_);
        }
        FinishOnce(response.status());
      });
    }
  }

 private:
  void OnTaken(const absl::Status& status) {
    std::optional<absl::Status> end;
    {
      MutexLock lock(&mutex_);
      busy_ = false;
      if (!status.ok() && !end_.has_value()) end_ = status;
      if (!end_.has_value()) {
        ++starting_;
      } else if (starting_ > 0) {
        // The previous read's StartRead has not returned yet.
        return;
      }
      end = end_;
    }
    if (end.has_value()) {
      sink_->Abandon();
      FinishOnce(*end);
    } else {
      StartRead(&bytes_);
      OnStarted();
    }
  }

  // The read's OnReadDone may have run by now.
  void OnStarted() {
    absl::Status end;
    {
      MutexLock lock(&mutex_);
      --starting_;
      if (!end_.has_value() || busy_ || starting_ > 0) return;
      end = *end_;
    }
    sink_->Abandon();
    FinishOnce(end);
  }

  grpc::ByteBuffer* const response_;
  std::unique_ptr<RequestSink<Request, Response>> sink_;  // Set before the first callback.
  grpc::ByteBuffer bytes_;                                // Read into only while the sink is not busy.
  // The number of threads in StartRead. Until gRPC has the read, it would free a call that is finished.
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A handler (see handlers.h) with its dependencies. Returns the sink for the requests.
template <typename Request, typename Response>
using SinkHandler = std::function<std::unique_ptr<RequestSink<Request, Response>>(const Caller&)>;

// Serves a stream of requests. `parts` must outlive the call.
template <typename Request, typename Response>
grpc::ServerReadReactor<grpc::ByteBuffer>* ServeSink(const CallParts& parts, absl::string_view method,
                                                     grpc::CallbackServerContext* context,
                                                     grpc::ByteBuffer* response,
                                                     const SinkHandler<Request, Response>& handler) {
  CallLog log = internal::StartCall(parts, method, context);
  std::unique_ptr<CallLimits::Stream> place;
  const absl::StatusOr<Caller> caller = AdmitStream(parts, method, *context, &log, &place);
  auto reactor = std::make_shared<SinkReactor<Request, Response>>(std::move(log), std::move(place),
                                                                  &parts.calls->streams, context, response);
  reactor->Start(caller.ok() ? handler(*caller) : nullptr, caller);
  return reactor.get();
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_SINK_FRAME_H_
