#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_PEER_LINE_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_PEER_LINE_H_

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "gloo/context.h"
#include "gloo/transport/unbound_buffer.h"

namespace tandem {

// Receives the events of a PeerLine. Called from the line's threads.
class PeerListener {
 public:
  virtual ~PeerListener() = default;
  // The peer ends the group with this status.
  virtual void PeerAborted(int peer, absl::Status status) = 0;
  // The connection ended although the peer had not said that it leaves.
  virtual void PeerLost(int peer, absl::string_view why) = 0;
};

// Exchanges control messages with another rank: signs of life, the group's end, and the end of this side. It
// has its own connection, because a data connection may be stuck after an aborted call. It has two threads,
// so that a peer that does not read blocks nobody. Thread-safe.
class PeerLine {
 public:
  // Uses the connection to `peer` in `context`, which serves lines alone. `context` and `listener` must
  // outlive the line.
  PeerLine(gloo::Context* context, int peer, absl::Duration sign_every, PeerListener* listener);
  ~PeerLine();
  PeerLine(const PeerLine&) = delete;
  PeerLine& operator=(const PeerLine&) = delete;

  // Starts the threads. Call it a single time, first.
  void Start();
  // Tells the peer that this side leaves, unless it was told of an abort. Does not wait.
  void Leave();
  // Waits until the peer has acknowledged that this side left or aborted, but at most until `deadline`, by
  // the steady clock.
  void AwaitKnown(absl::Duration deadline);
  // Leaves, waits as AwaitKnown, and ends the threads. The destructor calls it without a wait, if necessary.
  void Stop(absl::Duration deadline);
  // Tells the peer that the group ends with `status`. The peer receives at most 500 bytes of its message.
  void Abort(const absl::Status& status);

  // Returns the time of the peer's last message, by the steady clock.
  absl::Duration last_heard() const;
  // Returns whether the peer has left, so that its silence is no fault.
  bool left() const;

 private:
  enum class Kind : uint8_t { kSign, kAbort, kLeave, kKnown };
  // A message on the wire. Its size is fixed, because a receiver must know it.
  struct Message {
    Kind kind = Kind::kSign;
    int32_t code = 0;
    int32_t length = 0;
    char text[500];
  };

  void Send();
  void Receive();
  bool Heard(const Message& message);
  // Returns whether both threads end within `timeout`.
  bool BothEnd(absl::Duration timeout);

  const int peer_;
  const absl::Duration sign_every_;
  PeerListener* const listener_;

  Message outgoing_;  // Used by the sender's thread.
  Message incoming_;  // Used by the receiver's thread.
  const std::unique_ptr<gloo::transport::UnboundBuffer> outgoing_buffer_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> incoming_buffer_;

  mutable Mutex mutex_;
  absl::Duration last_heard_ ABSL_GUARDED_BY(mutex_);
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;  // This side leaves.
  bool left_ ABSL_GUARDED_BY(mutex_) = false;     // The peer has left.
  // The peer knows that this side left, or how the group ended.
  bool peer_knows_ ABSL_GUARDED_BY(mutex_) = false;
  bool to_acknowledge_ ABSL_GUARDED_BY(mutex_) = false;  // The peer waits for this side's acknowledgement.
  absl::Status to_abort_ ABSL_GUARDED_BY(mutex_);        // Still to be sent, if not OK.
  bool abort_said_ ABSL_GUARDED_BY(mutex_) = false;
  bool send_ended_ ABSL_GUARDED_BY(mutex_) = true;
  bool receive_ended_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread sender_;
  std::thread receiver_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_PEER_LINE_H_
