#ifndef TANDEM_SERVER_RPC_CONNECTION_CALLS_H_
#define TANDEM_SERVER_RPC_CONNECTION_CALLS_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace tandem {

// The other side of a TCP connection.
struct PeerAddress {
  // The bytes of its address, 4 or 16; IPv4 addresses within IPv6 have 4.
  std::string ip;
  int port = 0;

  auto operator<=>(const PeerAddress&) const = default;
};

// What counts as one address: of IPv6 the network of 64 bits, since a machine has as many addresses there as
// it likes. `ip` is PeerAddress::ip.
std::string SourceOf(const std::string& ip);
// Whether the peer is on this machine, and connected over loopback.
bool IsLoopback(const std::string& ip);

// What the calls of a connection have come to.
struct ConnectionCalls {
  // Of the connection; never given twice.
  int64_t number = 0;
  PeerAddress peer;
  // Calls that the client began.
  int64_t begun = 0;
  // Calls of which the client was sent the end.
  int64_t answered = 0;
};

// Connections that do harm.
struct Harm {
  std::vector<PeerAddress> peers;
  // Some address has so many calls without an answer that it is worth while to look again soon.
  bool is_likely = false;
};

// All TCP connections of this process's gRPC servers, as gRPC counts their calls (channelz). Takes some ten
// microseconds for each.
std::vector<ConnectionCalls> LookAtConnections();

// Finds connections that begin calls and take them back before their answers (Rapid Reset), or begin more
// than a connection may have. Not thread-safe.
class UnansweredCalls {
 public:
  struct Limits {
    // Calls without an answer that a connection may have more of, each second.
    double rate = 200;
    // So many at once: the streams that a connection may have open.
    double of_connection = 2048;
    // At once on all connections of one address, closed ones too.
    double of_address = 8192;
  };

  explicit UnansweredCalls(const Limits& limits) : limits_(limits) {}

  // The connections above the limits. `now` is of a clock that never jumps. Connections that are not among
  // `looked` are closed: what they had without an answer counts on for their addresses, so that nobody begins
  // anew by connecting again. Of an address above its limit these are in excess: connections whose calls
  // without an answer are more than the rate, and those on which no call had begun at the look before either,
  // whose calls may still wait to be read. On loopback the latter stay: they may be another user's.
  Harm Excess(const std::vector<ConnectionCalls>& looked, absl::Duration now);

 private:
  struct Line {
    // SourceOf the peer, or that it is on loopback, of which a process may have any address.
    std::string source;
    // Calls without an answer, of which some leave each second.
    double level = 0;
    int64_t unanswered = 0;
    bool is_new = true;
  };

  const Limits limits_;
  absl::Duration last_ = -absl::InfiniteDuration();
  // By ConnectionCalls::number.
  absl::flat_hash_map<int64_t, Line> lines_;
  // By source, the levels that closed connections had; as many leave each second as of one connection.
  absl::flat_hash_map<std::string, double> closed_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_CONNECTION_CALLS_H_
