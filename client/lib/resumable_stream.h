#ifndef TANDEM_CLIENT_LIB_RESUMABLE_STREAM_H_
#define TANDEM_CLIENT_LIB_RESUMABLE_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/codegen/channel_interface.h>
#include <grpcpp/support/async_stream.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem::client {

// How a broken stream reconnects.
struct ReconnectPolicy {
  // The longest time without a message since the break.
  absl::Duration give_up_after = absl::Seconds(60);
  // The first wait before an attempt. Each further wait doubles, up to the longest wait. A random part of up
  // to a half is cut from each wait, so that clients return at different moments. If a lost connection is
  // made again, the wait ends after `first_wait`.
  absl::Duration first_wait = absl::Milliseconds(200);
  absl::Duration longest_wait = absl::Seconds(5);
};

// Observes a running stream. All calls are on the thread that runs the stream.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  // Called after each message, whenever no message has arrived for Patience(), and at least every 100 ms
  // while the stream waits for its next attempt. Returning false ends the stream with CANCELLED.
  virtual bool KeepGoing() { return true; }
  // Returns the longest wait for a message until the next KeepGoing. At most 500 ms count. Default 100 ms.
  virtual absl::Duration Patience() { return absl::Milliseconds(100); }
  // The stream broke, or the daemon refused it (RESOURCE_EXHAUSTED). The next attempt starts after `wait`, or
  // earlier if a lost connection is made again. Called for each failed attempt.
  virtual void Lost(const absl::Status& /*why*/, absl::Duration /*wait*/) {}
  // The stream has messages again. Also called after a second break, if a stream without messages lasted for
  // a while between the breaks.
  virtual void Restored() {}
};

// Runs a stream while a function returns true.
class ObserverWhile : public StreamObserver {
 public:
  explicit ObserverWhile(std::function<bool()> goes_on) : goes_on_(std::move(goes_on)) {}
  bool KeepGoing() override { return goes_on_(); }

 private:
  const std::function<bool()> goes_on_;
};

// Returns whether another attempt may succeed: the daemon stopped, cut the stream, or asked for a delay.
bool IsWorthReconnecting(const absl::Status& status);

// Measures the time since a stream broke, waits between attempts, and decides when to give up. Not
// thread-safe.
class Reconnector {
 public:
  // `channel` is the channel of the stream's calls. `channel` and `observer` must outlive the reconnector.
  Reconnector(const ReconnectPolicy& policy, grpc::ChannelInterface* channel, StreamObserver& observer)
      : policy_(policy), channel_(channel), observer_(observer) {}

  // Call this when the daemon has answered a call.
  void OnOpen();
  // Call this when a message has arrived.
  void OnMessage();
  // Call this when the stream broke. Waits. OK if the stream should try again, otherwise the stream's final
  // status.
  absl::Status OnBreak(const absl::Status& why);

 private:
  // Waits until `end` on SteadyNow's clock, or until the lost connection is made again. gRPC only connects
  // quickly while a thread waits for the channel. CANCELLED if the observer stops.
  absl::Status Wait(absl::Duration end);

  const ReconnectPolicy policy_;
  grpc::ChannelInterface* const channel_;
  StreamObserver& observer_;
  bool broken_ = false;
  absl::Duration broken_since_;
  // The time of the daemon's answer to the newest call. Infinite before the answer.
  absl::Duration open_since_ = absl::InfiniteDuration();
  absl::Duration next_wait_;
};

// Runs a single call of a server stream to its end. Calls `opened` when the daemon has answered, possibly
// long before the first message. Calls `accept` with each message; an error from `accept` ends the stream
// with this error.
template <typename Message>
absl::Status RunStreamOnce(const std::function<std::unique_ptr<grpc::ClientAsyncReader<Message>>(
                               grpc::ClientContext*, grpc::CompletionQueue*)>& open,
                           const std::function<void(const grpc::ClientContext&)>& opened,
                           const std::function<absl::Status(const Message&)>& accept,
                           const std::function<absl::Status(const grpc::Status&)>& convert,
                           StreamObserver& observer) {
  grpc::ClientContext context;
  // The queue is empty at return: only this function takes from it, and it starts one operation at a time.
  grpc::CompletionQueue queue;
  absl::Status own_end;
  const auto wait_for_operation = [&] {
    while (true) {
      void* tag = nullptr;
      bool ok = false;
      absl::Duration patience = absl::Milliseconds(500);
      if (own_end.ok()) patience = std::min(patience, observer.Patience());
      const auto deadline = std::chrono::system_clock::now() + absl::ToChronoMicroseconds(patience);
      if (queue.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) return ok;
      if (own_end.ok() && !observer.KeepGoing()) {
        own_end = absl::CancelledError("stopped");
        context.TryCancel();
      }
    }
  };
  std::unique_ptr<grpc::ClientAsyncReader<Message>> reader = open(&context, &queue);
  reader->StartCall(nullptr);
  bool going = wait_for_operation();
  if (going) {
    reader->ReadInitialMetadata(nullptr);
    going = wait_for_operation();
    // The daemon's answers have a call id. A call that did not reach the daemon has no metadata.
    if (going && !context.GetServerInitialMetadata().empty()) opened(context);
  }
  while (going) {
    Message message;
    reader->Read(&message, nullptr);
    going = wait_for_operation();
    if (!going || !own_end.ok()) continue;
    own_end = accept(message);
    if (own_end.ok() && !observer.KeepGoing()) own_end = absl::CancelledError("stopped");
    if (!own_end.ok()) context.TryCancel();
  }
  grpc::Status status;
  reader->Finish(&status, nullptr);
  wait_for_operation();
  return own_end.ok() ? convert(status) : own_end;
}

// Runs a server stream to its end, and repeats the call after each break. `open` prepares a call that
// continues after the last accepted message. `complete` decides after each call whether all messages have
// arrived. If so, the result is OK, whatever the call's status. If not, even a call that ended with OK counts
// as broken. `opened`, if given, gets each call that the daemon answered, with its initial metadata.
// `channel` is the channel of the calls.
template <typename Message>
absl::Status RunResumableStream(const ReconnectPolicy& policy, grpc::ChannelInterface* channel,
                                StreamObserver& observer,
                                const std::function<std::unique_ptr<grpc::ClientAsyncReader<Message>>(
                                    grpc::ClientContext*, grpc::CompletionQueue*)>& open,
                                const std::function<absl::Status(const Message&)>& accept,
                                const std::function<absl::Status(const grpc::Status&)>& convert,
                                const std::function<bool(const absl::Status&)>& complete,
                                const std::function<void(const grpc::ClientContext&)>& opened = {}) {
  Reconnector reconnector(policy, channel, observer);
  bool stopped = false;
  const std::function<absl::Status(const Message&)> accept_and_note = [&](const Message& message) {
    reconnector.OnMessage();
    absl::Status status = accept(message);
    stopped = !status.ok();
    return status;
  };
  const auto open_and_note = [&](const grpc::ClientContext& context) {
    reconnector.OnOpen();
    if (opened) opened(context);
  };
  while (true) {
    absl::Status status = RunStreamOnce<Message>(open, open_and_note, accept_and_note, convert, observer);
    if (complete(status)) return absl::OkStatus();
    if (stopped || !observer.KeepGoing()) return status;
    if (status.ok()) status = absl::UnavailableError("the daemon ended the stream early");
    if (!IsWorthReconnecting(status)) return status;
    if (absl::Status end = reconnector.OnBreak(status); !end.ok()) return end;
  }
}

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_RESUMABLE_STREAM_H_
