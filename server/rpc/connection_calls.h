#ifndef TANDEM_SERVER_RPC_CONNECTION_CALLS_H_
#define TANDEM_SERVER_RPC_CONNECTION_CALLS_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace tandem {

// The remote end of a TCP connection.
struct PeerAddress {
  // The address's 4 or 16 bytes. An IPv4 address in IPv6 has 4.
  std::string ip;
  int port = 0;

  auto operator<=>(const PeerAddress&) const = default;
};

// Returns the bytes that identify an address's owner. For IPv6 it is the 64-bit network, because a machine
// may use all addresses in it. `ip` is PeerAddress::ip.
std::string SourceOf(const std::string& ip);
// Returns true if the peer is connected over loopback.
bool IsLoopback(const std::string& ip);

// The calls of a connection so far.
struct ConnectionCalls {
  // The connection's number; never reused.
  int64_t number = 0;
  PeerAddress peer;
  // Calls that the client started.
  int64_t begun = 0;
  // Calls whose end was sent to the client.
  int64_t answered = 0;
};

// Connections that do harm.
struct Harm {
  std::vector<PeerAddress> peers;
  // True if an address has so many unanswered calls that the next look should come soon.
  bool is_likely = false;
};

// Returns all TCP connections of this process's gRPC servers, with gRPC's own counts (channelz). Takes some
// ten microseconds per connection.
std::vector<ConnectionCalls> LookAtConnections();

// Finds connections that start calls and cancel them before their answers (Rapid Reset), or start more calls
// than allowed. Not thread-safe.
class UnansweredCalls {
 public:
  struct Limits {
    // The unanswered calls that are forgiven per second and connection.
    double rate = 200;
    // The most unanswered calls of a connection: the streams that it may have open.
    double of_connection = 2048;
    // The most unanswered calls of an address, closed connections included.
    double of_address = 8192;
  };

  explicit UnansweredCalls(const Limits& limits) : limits_(limits) {}

  // Returns the connections above the limits. `now` must come from a monotonic clock. Connections that are
  // missing in `looked` are closed; their unanswered calls still count for their addresses, so that
  // reconnecting does not help.
  //
  // If an address is above its limit, two kinds of its connections are returned. The first kind has more
  // unanswered calls than `rate`. The second kind existed at the last look and has begun no call yet: it may
  // have sent calls that the server has not read. Loopback connections of the second kind are not returned,
  // because they may belong to another user.
  Harm Excess(const std::vector<ConnectionCalls>& looked, absl::Duration now);

 private:
  struct Line {
    // The peer's SourceOf. All loopback connections share a source, because a process may use any loopback
    // address.
    std::string source;
    // The unanswered calls, minus the forgiven calls.
    double level = 0;
    int64_t unanswered = 0;
    bool is_new = true;
  };

  const Limits limits_;
  absl::Duration last_ = -absl::InfiniteDuration();
  // Keyed by ConnectionCalls::number.
  absl::flat_hash_map<int64_t, Line> lines_;
  // The levels of closed connections, by source. Each source is forgiven like a single connection.
  absl::flat_hash_map<std::string, double> closed_;
};

// Decides when to look at the connections. Harmful calls cost processor time, so a nearly idle process need
// not look often. Not thread-safe.
class LookTimes {
 public:
  // Call this regularly. Returns true if the caller must look now: since the previous call, the process used
  // a tenth of a core or more, or the last look was a second ago. `now` must come from a monotonic clock.
  // `used` is the process's processor time so far.
  bool MustLook(absl::Duration now, absl::Duration used);

 private:
  absl::Duration last_look_ = -absl::InfiniteDuration();
  absl::Duration last_call_;
  absl::Duration last_used_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CONNECTION_CALLS_H_
