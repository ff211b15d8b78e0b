#ifndef TANDEM_CLIENT_LIB_RESUMABLE_STREAM_H_
#define TANDEM_CLIENT_LIB_RESUMABLE_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/codegen/channel_interface.h>
#include <grpcpp/support/async_stream.h>

#include <chrono>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem::client {

// How a broken stream is taken up again.
struct ReconnectPolicy {
  // Give up if nothing has come for so long since the break.
  absl::Duration give_up_after = absl::Seconds(60);
  // Wait so long before the first attempt, then twice as long each time, up to the longest. Each wait is
  // shortened at random by up to a half, so that clients come back at different moments. If a lost connection
  // is made again, a wait ends after `first_wait`.
  absl::Duration first_wait = absl::Milliseconds(200);
  absl::Duration longest_wait = absl::Seconds(5);
};

// Looks on while a stream runs. All calls come on the thread that runs the stream.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  // Called at least every 100 ms. False ends the stream with CANCELLED.
  virtual bool KeepGoing() { return true; }
  // The stream broke, or was not let in (RESOURCE_EXHAUSTED); the next attempt begins after `wait`, or before
  // that if a lost connection is made again. Called for each failed attempt.
  virtual void Lost(const absl::Status& /*why*/, absl::Duration /*wait*/) {}
  // The stream gives messages again; or, where it had none to give, held for a while and broke anew.
  virtual void Restored() {}
};

// Whether another attempt may mend it: the daemon went away, cut the stream, or asks for a moment.
bool IsWorthReconnecting(const absl::Status& status);

// Counts the time since a stream broke, waits between attempts, and says when to give up. Not thread-safe.
class Reconnector {
 public:
  // `channel` has the stream's calls; it and `observer` outlive the reconnector.
  Reconnector(const ReconnectPolicy& policy, grpc::ChannelInterface* channel, StreamObserver& observer)
      : policy_(policy), channel_(channel), observer_(observer) {}

  // The daemon answered a call.
  void OnOpen();
  // A message came.
  void OnMessage();
  // The stream broke. Waits. OK: try again; else what the stream ends with.
  absl::Status OnBreak(const absl::Status& why);

 private:
  // Waits until `end`, on SteadyNow's clock, or until the channel has the connection that it lacked. gRPC
  // makes a connection only while somebody waits for the channel. Without a waiter, a handshake takes tens of
  // seconds. CANCELLED if the observer stops.
  absl::Status Wait(absl::Duration end);

  const ReconnectPolicy policy_;
  grpc::ChannelInterface* const channel_;
  StreamObserver& observer_;
  bool broken_ = false;
  absl::Duration broken_since_;
  // When the daemon answered the newest call; infinitely late where it has not.
  absl::Duration open_since_ = absl::InfiniteDuration();
  absl::Duration next_wait_;
};

// Runs one call of a server stream to its end. `observer` is asked to go on at least every 100 ms. `opened`
// is called when the daemon has answered, which may be long before there is a message. `accept` takes each
// message; an error from it ends the stream with that error.
template <typename Message>
absl::Status RunStreamOnce(const std::function<std::unique_ptr<grpc::ClientAsyncReader<Message>>(
                               grpc::ClientContext*, grpc::CompletionQueue*)>& open,
                           const std::function<void(const grpc::ClientContext&)>& opened,
                           const std::function<absl::Status(const Message&)>& accept,
                           const std::function<absl::Status(const grpc::Status&)>& convert,
                           StreamObserver& observer) {
  grpc::ClientContext context;
  // Everything on the queue is done before it is left: this function alone takes from it, one operation at a
  // time.
  grpc::CompletionQueue queue;
  absl::Status own_end;
  const auto wait_for_operation = [&] {
    while (true) {
      void* tag = nullptr;
      bool ok = false;
      const auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(100);
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
    // The daemon's answers bear a call id; a call that did not reach it has nothing.
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

// Runs a server stream to its end, and calls again where it breaks. `open` prepares a call that goes on after
// the last accepted message. `complete` says, when a call ended, whether all has come: then the result is OK
// whatever the call's status; a call that ended well with more to come counts as broken. `opened`, where it
// is given, sees each call that the daemon answered, with its initial metadata. `channel` is that of the
// calls.
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
    if (status.ok()) status = absl::UnavailableError("the stream ended early");
    if (!IsWorthReconnecting(status)) return status;
    if (absl::Status end = reconnector.OnBreak(status); !end.ok()) return end;
  }
}

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_RESUMABLE_STREAM_H_
