#include "client/lib/resumable_stream.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/status_details.h"
#include "client/lib/steady_now.h"

namespace tandem::client {
namespace {

// An answered call that held for this time is no failed attempt.
constexpr absl::Duration kWhole = absl::Seconds(1);

}  // namespace

bool IsWorthReconnecting(const absl::Status& status) {
  // The user has too many calls or streams for now.
  if (ShortRetryDelay(status).has_value()) return true;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    // A server that stops cancels its calls. The client's own cancellations do not reach this function.
    case absl::StatusCode::kCancelled:
      return true;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      // A connection that breaks within a message looks like this.
      return absl::StrContains(status.message(), "RST_STREAM") ||
             absl::StrContains(status.message(), "Stream removed");
    default:
      return false;
  }
}

void Reconnector::OnOpen() { open_since_ = SteadyNow(); }

void Reconnector::OnMessage() {
  if (!broken_) return;
  broken_ = false;
  observer_.Restored();
}

absl::Status Reconnector::OnBreak(const absl::Status& why) {
  const absl::Duration now = SteadyNow();
  // A waiting job has no events for hours, so a call that held counts as a success.
  if (now - open_since_ >= kWhole) OnMessage();
  open_since_ = absl::InfiniteDuration();
  if (!broken_) {
    broken_ = true;
    broken_since_ = now;
    next_wait_ = policy_.first_wait;
  }
  const absl::Duration left = broken_since_ + policy_.give_up_after - now;
  if (left <= absl::ZeroDuration()) {
    // The connection works. The daemon's answer already has the cause and the fix.
    if (absl::IsResourceExhausted(why)) return why;
    return absl::UnavailableError(absl::StrCat("cannot reconnect within ",
                                               absl::FormatDuration(policy_.give_up_after),
                                               " (--reconnect-timeout): ", why.message()));
  }
  absl::BitGen random;
  const absl::Duration wait = std::min(next_wait_ * absl::Uniform(random, 0.5, 1.0), left);
  next_wait_ = std::min(next_wait_ * 2, policy_.longest_wait);
  observer_.Lost(why, wait);
  return Wait(now + wait);
}

absl::Status Reconnector::Wait(absl::Duration end) {
  // Limits the attempts to reach a server that drops each connection at once.
  const absl::Duration earliest = SteadyNow() + policy_.first_wait;
  bool lost = false;
  for (absl::Duration now = SteadyNow(); now < end; now = SteadyNow()) {
    if (!observer_.KeepGoing()) return absl::CancelledError("stopped");
    // A call starts an attempt to connect, and gRPC repeats the attempt. After the loss of an established
    // connection, no attempt is running.
    const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/lost && now >= earliest);
    if (state != GRPC_CHANNEL_READY) {
      lost = true;
    } else if (lost && now >= earliest) {
      break;
    }
    channel_->WaitForStateChange(
        state, absl::ToChronoTime(absl::Now() + std::min(end - now, absl::Milliseconds(100))));
  }
  return absl::OkStatus();
}

}  // namespace tandem::client
