#ifndef TANDEM_SERVER_RPC_UNARY_FRAME_H_
#define TANDEM_SERVER_RPC_UNARY_FRAME_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "engine/base/clock.h"
#include "server/rpc/call_frame.h"
#include "server/rpc/call_interest.h"
#include "server/rpc/fair_pool.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/reply.h"
#include "third_party/spdlog/log.h"

// Like call_frame.h, for unary methods.

namespace tandem {

// A unary call. Lives until gRPC is done with the call and the reply is destroyed.
class UnaryReactor : public grpc::ServerUnaryReactor,
                     public ActiveStreams::Stream,
                     public std::enable_shared_from_this<UnaryReactor> {
 public:
  // If `is_repeatable`, the answer may be refused after the work, because the client may call again.
  UnaryReactor(CallLog log, bool is_repeatable, OpenCalls* calls, grpc::CallbackServerContext* context,
               grpc::ByteBuffer* response)
      : log_(std::move(log)),
        is_repeatable_(is_repeatable),
        calls_(calls),
        context_(context),
        response_(response) {}

  // Call once, before the method returns. Without a place, the caller's status is the answer.
  template <typename Response>
  Reply<Response> Start(const absl::StatusOr<Caller>& caller, std::unique_ptr<UnaryCounts::Place> place) {
    self_ = this->shared_from_this();
    place_ = std::move(place);
    if (caller.ok()) number_ = calls_->unary.Add(this->shared_from_this(), *caller);
    return Reply<Response>(
        [self = this->shared_from_this()](absl::StatusOr<Response> result) {
          self->Answer(std::move(result));
        },
        interest_, [self = this->shared_from_this()] { return self->place_->CheckRoom(); });
  }

  // Names the call's resource in the log. Call before the answer.
  template <typename Request>
  void SetResource(const Request& request) {
    internal::SetResource(request, &log_);
  }

  // Makes this status the answer. Does nothing if an answer exists.
  void End(const absl::Status& status) override {
    MutexLock lock(&mutex_);
    if (answered_.has_value() || end_.has_value()) return;
    end_ = status;
    interest_->Lose();
  }

  void Cut() override {
    MutexLock lock(&mutex_);
    // gRPC keeps the context until OnDone returns.
    if (!done_) context_->TryCancel();
  }

  bool IsOverdue(absl::Duration now) override {
    MutexLock lock(&mutex_);
    if (done_ || !answered_.has_value() || now - *answered_ < calls_->counts.limits().reading_time)
      return false;
    // Logged once.
    if (!std::exchange(told_, true)) {
      spdlog::info("cut off a call call={}: its client has not read the answer in {}", log_.call_id(),
                   absl::FormatDuration(calls_->counts.limits().reading_time));
    }
    return true;
  }

  void OnCancel() override { interest_->Lose(); }

  void OnDone() override {
    {
      MutexLock lock(&mutex_);
      done_ = true;
    }
    if (number_ != 0) calls_->unary.Remove(number_);
    place_ = nullptr;
    std::shared_ptr<UnaryReactor> last = std::move(self_);
  }

 private:
  template <typename Response>
  void Answer(absl::StatusOr<Response> result) {
    {
      MutexLock lock(&mutex_);
      if (end_.has_value()) result = *end_;
      answered_ = Clock::Real()->Elapsed();
    }
    if (result.ok() && place_ != nullptr) {
      // The bytes stay until the client has read the answer.
      absl::Status held = place_->HoldAnswer(static_cast<int64_t>(result->ByteSizeLong()), is_repeatable_);
      if (!held.ok()) result = std::move(held);
    }
    if (result.ok()) {
      *response_ = internal::BytesOf(*result);
      internal::SetResource(*result, &log_);
    }
    log_.Finish(result.status());
    this->Finish(ToGrpcStatus(result.status()));
  }

  CallLog log_;
  const bool is_repeatable_;
  OpenCalls* const calls_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const response_;
  const std::shared_ptr<CallInterest> interest_ = std::make_shared<CallInterest>();
  std::unique_ptr<UnaryCounts::Place> place_;  // Set before the first callback; destroyed after the last.
  int64_t number_ = 0;                         // Set before the first callback.
  std::shared_ptr<UnaryReactor> self_;

  Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Duration> answered_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// Returns true if the method only reads. Repeating another method may create a second thing, or fail because
// the first call succeeded.
inline bool IsRepeatable(absl::string_view method) {
  return absl::StartsWith(method, "Get") || absl::StartsWith(method, "List") ||
         absl::StartsWith(method, "Describe") || absl::StartsWith(method, "Parse");
}

// A handler (see handlers.h) with its dependencies.
template <typename Request, typename Response>
using UnaryHandler = std::function<void(const Caller&, const Request&, Reply<Response>)>;

// Serves a unary call. Calls the handler if AdmitUnary accepts the call. `parts` must outlive the call.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ServeUnary(const CallParts& parts, absl::string_view method,
                                     grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response,
                                     const UnaryHandler<Request, Response>& handler) {
  grpc::ByteBuffer bytes = internal::TakeBytes(request);
  const auto size = static_cast<int64_t>(bytes.Length());
  const auto message = std::make_shared<Request>();
  const bool is_small = size <= kSmallRequestBytes;
  absl::Status parsed;
  if (is_small) parsed = ParseRequest(std::exchange(bytes, {}), kMostRequestBytes, message.get());
  CallLog log = internal::StartCall(parts, method, context);
  internal::SetResource(*message, &log);
  std::unique_ptr<UnaryCounts::Place> place;
  const absl::StatusOr<Caller> caller = AdmitUnary(parts, method, *context, &log, &place);
  auto reactor =
      std::make_shared<UnaryReactor>(std::move(log), IsRepeatable(method), parts.calls, context, response);
  Reply<Response> reply = reactor->Start<Response>(caller, std::move(place));
  if (!caller.ok() || !parsed.ok()) {
    reply(caller.ok() ? parsed : caller.status());
  } else if (is_small) {
    reply.KeepRequest(message);
    handler(*caller, *message, std::move(reply));
  } else {
    std::shared_ptr<const CallInterest> interest = reply.interest();
    parts.pool->Offer(
        caller->user, size,
        [handler = handler, caller = *caller, message, bytes = std::move(bytes), reactor,
         reply = std::move(reply)](absl::StatusOr<FairPool::Hold> taken) mutable {
          if (!taken.ok()) return reply(taken.status());
          absl::Status parsed = ParseRequest(std::exchange(bytes, {}), kMostRequestBytes, message.get());
          // From here on, the waiting message itself is counted.
          taken->Release();
          if (!parsed.ok()) return reply(std::move(parsed));
          reactor->SetResource(*message);
          reply.KeepRequest(message);
          handler(caller, *message, std::move(reply));
        },
        std::move(interest));
  }
  return reactor.get();
}

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_UNARY_FRAME_H_
