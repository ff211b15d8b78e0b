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

// What a PeerLine has to tell. Called from threads of the line.
class PeerListener {
 public:
  virtual ~PeerListener() = default;
  // The peer ends the group with this status.
  virtual void PeerAborted(int peer, absl::Status status) = 0;
  // The connection ended though the peer had not said that it leaves.
  virtual void PeerLost(int peer, absl::string_view why) = 0;
};

// The small talk with one other rank: signs of life, how the group ended, and that an end is given up. It has
// a connection of its own, as one for data may stand still once a call was given up. Two threads, so that a
// peer that does not listen holds up nobody. Thread-safe.
class PeerLine {
 public:
  // Talks over the connection to `peer` of `context`, which serves lines alone. `context` and `listener`
  // outlive it.
  PeerLine(gloo::Context* context, int peer, absl::Duration sign_every, PeerListener* listener);
  ~PeerLine();
  PeerLine(const PeerLine&) = delete;
  PeerLine& operator=(const PeerLine&) = delete;

  // Once, and before all that follows.
  void Start();
  // Says to the peer that this side leaves, unless an abort was said. The next call waits until the peer
  // knows.
  void Leave();
  // Waits a little until the peer knows that this side left, or of the abort.
  void AwaitKnown();
  // Leaves, waits a little until the peer knows of that or of the abort, and ends the threads. The destructor
  // does so where it was not done.
  void Stop();
  // Tells the peer that the group ends with `status`.
  void Abort(const absl::Status& status);

  // When the peer was last heard.
  absl::Duration last_heard() const;
  // Whether the peer has left, and was right to be silent.
  bool left() const;

 private:
  enum class Kind : uint8_t { kSign, kAbort, kLeave, kKnown };
  // As it travels: of a fixed size, as a receiver must know how much comes.
  struct Message {
    Kind kind = Kind::kSign;
    int32_t code = 0;
    int32_t length = 0;
    char text[500];
  };

  void Send();
  void Receive();
  bool Heard(const Message& message);
  // Whether both threads end within `timeout`.
  bool BothEnd(absl::Duration timeout);

  const int peer_;
  const absl::Duration sign_every_;
  PeerListener* const listener_;

  Message outgoing_;  // Of the sender's thread.
  Message incoming_;  // Of the receiver's thread.
  const std::unique_ptr<gloo::transport::UnboundBuffer> outgoing_buffer_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> incoming_buffer_;

  mutable Mutex mutex_;
  absl::Duration last_heard_ ABSL_GUARDED_BY(mutex_);
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;         // This side.
  bool left_ ABSL_GUARDED_BY(mutex_) = false;            // The other side.
  bool peer_knows_ ABSL_GUARDED_BY(mutex_) = false;      // That this side left, or how the group ended.
  bool to_acknowledge_ ABSL_GUARDED_BY(mutex_) = false;  // The peer waits to hear that this side knows.
  absl::Status to_abort_ ABSL_GUARDED_BY(mutex_);        // Still to be said, where it is not OK.
  bool abort_said_ ABSL_GUARDED_BY(mutex_) = false;
  bool send_ended_ ABSL_GUARDED_BY(mutex_) = true;
  bool receive_ended_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread sender_;
  std::thread receiver_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_PEER_LINE_H_
