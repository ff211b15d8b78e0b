#include "engine/collectives/gloo/peer_line.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <string>

#include "engine/base/clock.h"

namespace tandem {
namespace {

// Gloo needs a limit for each wait.
constexpr std::chrono::hours kLineLimit(24 * 365);
// The only slot of the connection.
constexpr uint64_t kSlot = 0;

// Returns the beginning of `text`, at most `most` bytes, which ends with a whole character of UTF-8.
absl::string_view Beginning(absl::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace

PeerLine::PeerLine(gloo::Context* context, int peer, absl::Duration sign_every, PeerListener* listener)
    : peer_(peer),
      sign_every_(sign_every),
      listener_(listener),
      outgoing_buffer_(context->createUnboundBuffer(&outgoing_, sizeof(outgoing_))),
      incoming_buffer_(context->createUnboundBuffer(&incoming_, sizeof(incoming_))),
      last_heard_(Clock::Real()->Elapsed()) {}

PeerLine::~PeerLine() { Stop(Clock::Real()->Elapsed()); }

void PeerLine::Start() {
  {
    MutexLock lock(&mutex_);
    send_ended_ = receive_ended_ = false;
  }
  sender_ = std::thread([this] { Send(); });
  receiver_ = std::thread([this] { Receive(); });
}

void PeerLine::Stop(absl::Duration deadline) {
  Leave();
  AwaitKnown(deadline);
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  // Repeated, because a wait that begins after the wake-up would miss it.
  do {
    outgoing_buffer_->abortWaitSend();
    incoming_buffer_->abortWaitRecv();
  } while (!BothEnd(absl::Milliseconds(5)));
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

void PeerLine::AwaitKnown(absl::Duration deadline) {
  MutexLock lock(&mutex_);
  const auto known = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool told = leaving_ || abort_said_ || !to_abort_.ok();
    return ((peer_knows_ || !told) && !to_acknowledge_) || receive_ended_ || send_ended_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&known), deadline - Clock::Real()->Elapsed());
}

bool PeerLine::BothEnd(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return send_ended_ && receive_ended_; };
  return mutex_.AwaitWithTimeout(absl::Condition(&ended), timeout);
}

void PeerLine::Leave() {
  MutexLock lock(&mutex_);
  leaving_ = true;
}

void PeerLine::Abort(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (!abort_said_ && to_abort_.ok()) to_abort_ = status;
}

absl::Duration PeerLine::last_heard() const {
  MutexLock lock(&mutex_);
  return last_heard_;
}

bool PeerLine::left() const {
  MutexLock lock(&mutex_);
  return left_;
}

void PeerLine::Send() {
  bool leave_said = false;
  const auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || to_acknowledge_ || !to_abort_.ok() || (leaving_ && !leave_said && !abort_said_);
  };
  try {
    while (true) {
      {
        MutexLock lock(&mutex_);
        mutex_.AwaitWithTimeout(absl::Condition(&due), sign_every_);
        if (stopped_) break;
        outgoing_ = Message();
        if (to_acknowledge_) {
          outgoing_.kind = Kind::kKnown;
        } else if (!to_abort_.ok()) {
          outgoing_.kind = Kind::kAbort;
          outgoing_.code = static_cast<int32_t>(to_abort_.code());
          const absl::string_view text = Beginning(to_abort_.message(), sizeof(outgoing_.text));
          outgoing_.length = static_cast<int32_t>(text.size());
          std::memcpy(outgoing_.text, text.data(), text.size());
          abort_said_ = true;
          to_abort_ = absl::OkStatus();
        } else if (leaving_ && !leave_said && !abort_said_) {
          outgoing_.kind = Kind::kLeave;
          leave_said = true;
        }
      }
      outgoing_buffer_->send(peer_, kSlot);
      if (!outgoing_buffer_->waitSend(kLineLimit)) break;
      if (outgoing_.kind == Kind::kKnown) {
        MutexLock lock(&mutex_);
        to_acknowledge_ = false;
      }
    }
  } catch (const std::exception&) {
    // The connection ended. The receiver reports it.
  }
  MutexLock lock(&mutex_);
  send_ended_ = true;
}

void PeerLine::Receive() {
  try {
    do {
      incoming_buffer_->recv(peer_, kSlot);
      if (!incoming_buffer_->waitRecv(kLineLimit)) break;
    } while (Heard(incoming_));
  } catch (const std::exception& error) {
    bool expected;
    {
      MutexLock lock(&mutex_);
      expected = leaving_ || left_ || stopped_;
    }
    if (!expected) listener_->PeerLost(peer_, error.what());
  }
  MutexLock lock(&mutex_);
  receive_ended_ = true;
}

// Handles a message. Returns whether further messages may come.
bool PeerLine::Heard(const Message& message) {
  absl::Status aborted;
  bool more = true;
  {
    MutexLock lock(&mutex_);
    last_heard_ = Clock::Real()->Elapsed();
    switch (message.kind) {
      case Kind::kSign:
        break;
      case Kind::kKnown:
        peer_knows_ = true;
        break;
      case Kind::kLeave:
        left_ = true;
        to_acknowledge_ = true;
        break;
      case Kind::kAbort: {
        const size_t length = std::clamp<int32_t>(message.length, 0, sizeof(message.text));
        aborted = absl::Status(static_cast<absl::StatusCode>(message.code),
                               absl::string_view(message.text, length));
        left_ = true;
        to_acknowledge_ = true;
        break;
      }
    }
    // A peer that has left only acknowledges.
    more = !(left_ && peer_knows_) && !stopped_;
  }
  if (!aborted.ok()) listener_->PeerAborted(peer_, aborted);
  return more;
}

}  // namespace tandem
